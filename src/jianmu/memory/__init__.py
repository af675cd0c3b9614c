"""Checkpoints, long-term memory, memory tools and context building, each name loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jianmu.memory.checkpoint.base import CheckpointerProtocol as CheckpointerProtocol
    from jianmu.memory.checkpoint.cipher import AesGcmCipher as AesGcmCipher
    from jianmu.memory.checkpoint.factory import create_checkpointer as create_checkpointer
    from jianmu.memory.checkpoint.file import FileCheckpointer as FileCheckpointer
    from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer as InMemoryCheckpointer
    from jianmu.memory.checkpoint.null import NullCheckpointer as NullCheckpointer
    from jianmu.memory.checkpoint.postgres import PostgresCheckpointer as PostgresCheckpointer
    from jianmu.memory.checkpoint.sqlite import SqliteCheckpointer as SqliteCheckpointer
    from jianmu.memory.context import ContextBuilder as ContextBuilder
    from jianmu.memory.context import TokenBudget as TokenBudget
    from jianmu.memory.long_term.base import LongTermMemoryProtocol as LongTermMemoryProtocol
    from jianmu.memory.long_term.mem0 import Mem0LongTermMemory as Mem0LongTermMemory
    from jianmu.memory.long_term.postgres import PostgresLongTermMemory as PostgresLongTermMemory
    from jianmu.memory.long_term.simple_store import SimpleStore as SimpleStore
    from jianmu.memory.long_term.sqlite import SqliteLongTermMemory as SqliteLongTermMemory
    from jianmu.memory.service import MemoryService as MemoryService
    from jianmu.memory.tools import MemoryAddTool as MemoryAddTool
    from jianmu.memory.tools import MemorySearchTool as MemorySearchTool
    from jianmu.memory.tools import create_memory_tools as create_memory_tools

_HOMES = {
    "AesGcmCipher": "jianmu.memory.checkpoint.cipher",
    "CheckpointerProtocol": "jianmu.memory.checkpoint.base",
    "ContextBuilder": "jianmu.memory.context",
    "FileCheckpointer": "jianmu.memory.checkpoint.file",
    "InMemoryCheckpointer": "jianmu.memory.checkpoint.in_memory",
    "LongTermMemoryProtocol": "jianmu.memory.long_term.base",
    "Mem0LongTermMemory": "jianmu.memory.long_term.mem0",
    "MemoryAddTool": "jianmu.memory.tools",
    "MemorySearchTool": "jianmu.memory.tools",
    "MemoryService": "jianmu.memory.service",
    "NullCheckpointer": "jianmu.memory.checkpoint.null",
    "SqliteCheckpointer": "jianmu.memory.checkpoint.sqlite",
    "SqliteLongTermMemory": "jianmu.memory.long_term.sqlite",
    "PostgresCheckpointer": "jianmu.memory.checkpoint.postgres",
    "PostgresLongTermMemory": "jianmu.memory.long_term.postgres",
    "SimpleStore": "jianmu.memory.long_term.simple_store",
    "TokenBudget": "jianmu.memory.context",
    "create_checkpointer": "jianmu.memory.checkpoint.factory",
    "create_memory_tools": "jianmu.memory.tools",
}

__all__ = [
    "AesGcmCipher",
    "CheckpointerProtocol",
    "ContextBuilder",
    "FileCheckpointer",
    "InMemoryCheckpointer",
    "LongTermMemoryProtocol",
    "Mem0LongTermMemory",
    "MemoryAddTool",
    "MemorySearchTool",
    "MemoryService",
    "NullCheckpointer",
    "PostgresCheckpointer",
    "PostgresLongTermMemory",
    "SimpleStore",
    "SqliteCheckpointer",
    "SqliteLongTermMemory",
    "TokenBudget",
    "create_checkpointer",
    "create_memory_tools",
]


if not TYPE_CHECKING:  # a checker would take any name at all for a part of the module

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
