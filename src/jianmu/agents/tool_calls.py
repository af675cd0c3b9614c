"""Tool calls: which need a person, and what tools get from the program rather than from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jianmu.messages import ToolCall
from jianmu.tools import FunctionTool, Tool, ToolSet

__all__ = ["needs_approval", "with_dependencies"]


def needs_approval(tools: ToolSet, call: ToolCall) -> bool:
    """Whether a person must agree before `call` runs; a tool that does not exist needs nobody."""
    return call.name in tools and tools[call.name].requires_approval


def with_dependencies(tools: ToolSet, deps: Any) -> ToolSet:
    """Return the tools with their injected parameters bound.

    A parameter called ``deps`` gets `deps` itself; any other gets the key of that name when `deps` is a
    mapping, else the attribute of that name. What `deps` does not have is left to the parameter's default.

    Args:
        tools: The tools.
        deps: Anything; None binds nothing but parameters called ``deps``.
    """
    return ToolSet(_bound(tool, deps) for tool in tools)


def _bound(tool: Tool, deps: Any) -> Tool:
    if not isinstance(tool, FunctionTool):
        return tool
    values = {name: _value(deps, name) for name in tool.injected if name == "deps" or _has(deps, name)}
    return tool.bind(**values) if values else tool


def _has(deps: Any, name: str) -> bool:
    return name in deps if isinstance(deps, Mapping) else hasattr(deps, name)


def _value(deps: Any, name: str) -> Any:
    if name == "deps":
        return deps
    return deps[name] if isinstance(deps, Mapping) else getattr(deps, name)
