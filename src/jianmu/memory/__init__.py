"""Checkpoints, long-term memory, memory tools and context building, each name loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jianmu.memory.checkpoint.base import CheckpointerProtocol as CheckpointerProtocol
    from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer as InMemoryCheckpointer
    from jianmu.memory.checkpoint.null import NullCheckpointer as NullCheckpointer
    from jianmu.memory.long_term.base import LongTermMemoryProtocol as LongTermMemoryProtocol
    from jianmu.memory.long_term.mem0 import Mem0LongTermMemory as Mem0LongTermMemory
    from jianmu.memory.long_term.simple_store import SimpleStore as SimpleStore

_HOMES = {
    "CheckpointerProtocol": "jianmu.memory.checkpoint.base",
    "InMemoryCheckpointer": "jianmu.memory.checkpoint.in_memory",
    "LongTermMemoryProtocol": "jianmu.memory.long_term.base",
    "Mem0LongTermMemory": "jianmu.memory.long_term.mem0",
    "NullCheckpointer": "jianmu.memory.checkpoint.null",
    "SimpleStore": "jianmu.memory.long_term.simple_store",
}

__all__ = [
    "CheckpointerProtocol",
    "InMemoryCheckpointer",
    "LongTermMemoryProtocol",
    "Mem0LongTermMemory",
    "NullCheckpointer",
    "SimpleStore",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
