"""Tool calls as a provider takes them, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jianmu.messages import Message, ToolCall
from jianmu.messages.wire import arguments_as_object, arguments_as_text
from jianmu.tools import Tool
from jianmu.tools.names import legal_name

__all__ = ["own_names", "wire_history"]


def wire_history(messages: Iterable[Message]) -> list[Message]:
    """Return `messages` with every call named as the provider knows the tool, its arguments a JSON object.

    What a model wrote that is no JSON object goes back inside one: many servers refuse a whole thread for it.
    """
    return [_sendable(message) if message.tool_calls else message for message in messages]


def _sendable(message: Message) -> Message:
    calls = tuple(
        call.model_copy(update={"name": legal_name(call.name), "arguments": _arguments(call)})
        for call in message.tool_calls
    )
    return message if calls == message.tool_calls else message.model_copy(update={"tool_calls": calls})


def _arguments(call: ToolCall) -> dict[str, Any] | str:
    if not isinstance(call.arguments, str):
        return call.arguments
    whole = arguments_as_object(call)
    told = arguments_as_text(call)
    return whole if not told.strip() or whole == {"_text": told} else call.arguments


def own_names(calls: Iterable[ToolCall], tools: Iterable[Tool]) -> tuple[ToolCall, ...]:
    """Return the calls of an answer under the tools' own names, each with an id of its own.

    A name that no tool has stays as it is. Of two calls with one id the later gets its place added: some
    servers count wrongly, and all refuse a request with two results for one id.
    """
    own = {legal_name(tool.name): tool.name for tool in tools}
    found: dict[str, ToolCall] = {}
    for place, call in enumerate(calls):
        unique = call.id or f"call_{place}"
        while unique in found:
            unique = f"{unique}_{place}"
        found[unique] = call.model_copy(update={"id": unique, "name": own.get(call.name, call.name)})
    return tuple(found.values())
