"""Tools in the forms that providers and protocols take; plain dicts, no provider's package needed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

from jianmu.tools.names import legal_name
from jianmu.tools.strict import strict_schema

__all__ = ["to_anthropic", "to_gemini", "to_mcp", "to_openai"]


class _Described(Protocol):
    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    read_only: bool


def to_openai(tool: _Described, *, strict: bool = False) -> dict[str, Any]:
    """Return a function tool of OpenAI's chat completions; `strict` guarantees arguments by the schema."""
    function: dict[str, Any] = {
        "name": legal_name(tool.name),
        "description": tool.description,
        "parameters": strict_schema(tool.input_schema) if strict else _plain(tool.input_schema),
    }
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def to_anthropic(tool: _Described) -> dict[str, Any]:
    """Return a tool of Anthropic's messages."""
    return {
        "name": legal_name(tool.name),
        "description": tool.description,
        "input_schema": _plain(tool.input_schema),
    }


def to_gemini(tool: _Described) -> dict[str, Any]:
    """Return a Gemini function declaration; the schema goes as JSON schema, not as its older subset."""
    return {
        "name": legal_name(tool.name),
        "description": tool.description,
        "parameters_json_schema": _plain(tool.input_schema),
    }


def to_mcp(tool: _Described) -> dict[str, Any]:
    """Return a tool of the Model Context Protocol; only an object result has an output schema there."""
    described: dict[str, Any] = {
        "name": legal_name(tool.name),
        "description": tool.description,
        "inputSchema": _plain(tool.input_schema),
        "annotations": {"readOnlyHint": tool.read_only},
    }
    if tool.output_schema.get("type") == "object":
        described["outputSchema"] = _plain(tool.output_schema)
    return described


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(dict(schema))
