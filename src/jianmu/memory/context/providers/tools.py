"""A description of the tools, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from jianmu.memory.context.providers.base import ContextProvider, Entries, OnError, Provided
from jianmu.memory.context.request import ContextRequest
from jianmu.memory.context.schemas import ToolSchema, tool_schema

__all__ = ["ToolsDescProvider"]


class ToolsDescProvider(ContextProvider):
    """Tells the model which tools it has, so that it decides itself when to call one.

    Args:
        tools: The tools; those given to `build(tools=...)` by default.
        detail: ``brief`` names each tool with the first line of its description, beside schemas that are sent
            natively; ``full`` adds the arguments, for a model without native calls.
        heading: The first line.
        priority: Higher is served first.
        cap: The most it may cost; tools that do not fit are left out and reported.
        on_error: Whether a failure ends the build.
        name: Names the section.
    """

    def __init__(
        self,
        tools: Iterable[object] | None = None,
        *,
        detail: Literal["brief", "full"] = "brief",
        heading: str = "You can call these tools:",
        priority: int = 70,
        cap: int | float | None = None,
        on_error: OnError = "raise",
        name: str = "tools",
    ) -> None:
        super().__init__(name, place="prefix", priority=priority, cap=cap, cut="entries", on_error=on_error)
        self._tools = None if tools is None else tuple(tools)
        self._full = detail == "full"
        self._heading = heading

    def provide(self, request: ContextRequest) -> Provided:
        """Return one entry per tool."""
        tools = request.tools if self._tools is None else self._tools
        lines = [self._line(tool_schema(tool)) for tool in tools]
        return Entries(lines, self._render) if lines else None

    def _render(self, lines: Sequence[object]) -> str:
        return "\n".join([self._heading, *map(str, lines)])

    def _line(self, schema: ToolSchema) -> str:
        text = schema.description.strip()
        if not self._full:
            return f"- {schema.name}: {text.splitlines()[0] if text else 'no description'}"
        properties = schema.parameters.get("properties", {})
        required = schema.parameters.get("required", ())
        arguments = [
            f"    {name} ({spec.get('type', 'any')}{'' if name in required else ', optional'})"
            + (f": {spec['description']}" if spec.get("description") else "")
            for name, spec in properties.items()
        ]
        return "\n".join([f"- {schema.name}: {text or 'no description'}", *arguments])
