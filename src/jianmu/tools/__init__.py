"""Functions that a model may call."""

from jianmu.tools.ambient import current_idempotency_key
from jianmu.tools.base import Tool
from jianmu.tools.function import FunctionTool, tool
from jianmu.tools.injected import Injected
from jianmu.tools.result import ToolResult
from jianmu.tools.toolset import ToolSet

__all__ = [
    "FunctionTool",
    "Injected",
    "Tool",
    "ToolResult",
    "ToolSet",
    "current_idempotency_key",
    "tool",
]
