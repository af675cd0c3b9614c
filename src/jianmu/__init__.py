"""Jianmu (建木): agents that keep their place and their knowledge.

Names are loaded when first used, so that ``import jianmu`` costs nothing it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jianmu.events import RuntimeEventBus as RuntimeEventBus
    from jianmu.messages import Message as Message

__version__ = "0.1.0"

_HOMES = {
    "Message": "jianmu.messages",
    "RuntimeEventBus": "jianmu.events",
}

__all__ = ["Message", "RuntimeEventBus", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
