"""Tool names as a provider takes them, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from jianmu.messages import Message, ToolCall
from jianmu.tools import Tool

__all__ = ["WireNames", "exported_name"]

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


class WireNames:
    """Maps the names of one request's tools to what the exporter made of them.

    Args:
        tools: The tools.
        wire_names: Their exported names, in the same order.
    """

    def __init__(self, tools: Sequence[Tool], wire_names: Iterable[str]) -> None:
        pairs = list(zip((tool.name for tool in tools), wire_names, strict=True))
        self._to_wire = dict(pairs)
        self._from_wire = {wire: name for name, wire in pairs}

    def from_wire(self, name: str) -> str:
        """Return the tool's own name; a name that no tool has stays as the model wrote it."""
        return self._from_wire.get(name, name)

    def history(self, messages: Iterable[Message]) -> list[Message]:
        """Return `messages` with every call named as the provider knows it."""
        return [self._renamed(message) if message.tool_calls else message for message in messages]

    def _renamed(self, message: Message) -> Message:
        calls = tuple(self._call(call) for call in message.tool_calls)
        return message if calls == message.tool_calls else message.model_copy(update={"tool_calls": calls})

    def _call(self, call: ToolCall) -> ToolCall:
        # A call of a tool that is not offered any more still has to be legal in the history.
        wire = self._to_wire.get(call.name) or _ILLEGAL.sub("_", call.name)[:64] or "_"
        return call if wire == call.name else call.model_copy(update={"name": wire})

    def restored(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls of an answer under the tools' own names."""
        return tuple(call.model_copy(update={"name": self.from_wire(call.name)}) for call in calls)


def exported_name(tool: dict[str, Any]) -> str:
    """Return the name inside one exported tool of either provider."""
    function = tool.get("function", tool)
    return str(function["name"])
