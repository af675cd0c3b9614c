"""Jianmu (建木): agents that keep their place and their knowledge.

Names are loaded when first used, so that ``import jianmu`` costs nothing it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jianmu.events import RuntimeEventBus as RuntimeEventBus
    from jianmu.messages import Message as Message
    from jianmu.project import RuntimeCheckpointConfig as RuntimeCheckpointConfig
    from jianmu.runtime import Ask as Ask
    from jianmu.runtime import AsyncNode as AsyncNode
    from jianmu.runtime import LeafContext as LeafContext
    from jianmu.runtime import Parallel as Parallel
    from jianmu.runtime import ReactiveRunner as ReactiveRunner
    from jianmu.runtime import RestorePolicy as RestorePolicy
    from jianmu.runtime import RunResult as RunResult
    from jianmu.runtime import Selector as Selector
    from jianmu.runtime import Sequence as Sequence
    from jianmu.runtime import Status as Status
    from jianmu.runtime import SuspensionMode as SuspensionMode
    from jianmu.runtime import node as node
    from jianmu.state import Ephemeral as Ephemeral
    from jianmu.state import StateManager as StateManager
    from jianmu.tools.base import Tool as Tool
    from jianmu.tools.function import tool as tool
    from jianmu.tools.toolset import ToolSet as ToolSet

__version__ = "0.1.0"

_HOMES = {
    "Ask": "jianmu.runtime",
    "AsyncNode": "jianmu.runtime",
    "LeafContext": "jianmu.runtime",
    "Parallel": "jianmu.runtime",
    "ReactiveRunner": "jianmu.runtime",
    "RestorePolicy": "jianmu.runtime",
    "RunResult": "jianmu.runtime",
    "Selector": "jianmu.runtime",
    "Sequence": "jianmu.runtime",
    "Status": "jianmu.runtime",
    "SuspensionMode": "jianmu.runtime",
    "node": "jianmu.runtime",
    "Ephemeral": "jianmu.state",
    "Message": "jianmu.messages",
    "RuntimeCheckpointConfig": "jianmu.project",
    "RuntimeEventBus": "jianmu.events",
    "Tool": "jianmu.tools.base",
    "ToolSet": "jianmu.tools.toolset",
    "StateManager": "jianmu.state",
    "tool": "jianmu.tools.function",
}

__all__ = [
    "Ask",
    "AsyncNode",
    "Ephemeral",
    "LeafContext",
    "Message",
    "Parallel",
    "ReactiveRunner",
    "RestorePolicy",
    "RunResult",
    "RuntimeCheckpointConfig",
    "RuntimeEventBus",
    "Selector",
    "Sequence",
    "StateManager",
    "Status",
    "SuspensionMode",
    "Tool",
    "ToolSet",
    "__version__",
    "node",
    "tool",
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
