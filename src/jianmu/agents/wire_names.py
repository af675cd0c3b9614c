"""Tool names as a provider takes them, and back."""

from __future__ import annotations

from collections.abc import Iterable

from jianmu.messages import Message, ToolCall
from jianmu.tools import Tool
from jianmu.tools.names import legal_name

__all__ = ["own_names", "wire_history"]


def wire_history(messages: Iterable[Message]) -> list[Message]:
    """Return `messages` with every call named as the provider knows the tool."""
    return [_renamed(message) if message.tool_calls else message for message in messages]


def _renamed(message: Message) -> Message:
    calls = tuple(call.model_copy(update={"name": legal_name(call.name)}) for call in message.tool_calls)
    return message if calls == message.tool_calls else message.model_copy(update={"tool_calls": calls})


def own_names(calls: Iterable[ToolCall], tools: Iterable[Tool]) -> tuple[ToolCall, ...]:
    """Return the calls of an answer under the tools' own names; a name that no tool has stays as it is."""
    own = {legal_name(tool.name): tool.name for tool in tools}
    return tuple(call.model_copy(update={"name": own.get(call.name, call.name)}) for call in calls)
