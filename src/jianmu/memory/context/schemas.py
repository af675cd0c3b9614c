"""What a model is told of a tool, read from whatever describes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jianmu.errors import ConfigError

__all__ = ["ToolSchema", "tool_schema"]


@dataclass(frozen=True)
class ToolSchema:
    """A tool's name, what it does, and the JSON schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def tool_schema(tool: object) -> ToolSchema:
    """Return the schema of a `Tool`, or of a dict in OpenAI's, Anthropic's or MCP's form.

    Raises:
        ConfigError: The value does not describe a tool.
    """
    if isinstance(tool, Mapping):
        inner = tool.get("function", tool)
        name, description = inner.get("name"), inner.get("description")
        parameters = _first(inner.get(key) for key in ("parameters", "input_schema", "inputSchema"))
    else:
        name, description = getattr(tool, "name", None), getattr(tool, "description", None)
        parameters = getattr(tool, "input_schema", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a {type(tool).__name__} does not describe a tool: it has no name")
    return ToolSchema(name, str(description or ""), _as_schema(parameters))


def _first(values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _as_schema(parameters: Any) -> Mapping[str, Any]:
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping):
        return parameters
    make = getattr(parameters, "model_json_schema", None)
    if not callable(make):
        kind = type(parameters).__name__
        raise ConfigError(f"a tool's input_schema is a JSON schema or a pydantic model, not a {kind}")
    schema: Mapping[str, Any] = make()
    return schema
