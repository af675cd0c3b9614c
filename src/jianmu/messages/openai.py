"""Messages as the OpenAI Chat Completions API has them; many other servers speak it too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from jianmu.errors import DecodeError
from jianmu.messages.message import ImagePart, Message, Part, Role, TextPart, ToolCall
from jianmu.messages.wire import arguments_as_text, as_mapping, clean, plain_text

__all__ = ["from_openai_message", "to_openai_messages"]

_NOT_IN_NAME = re.compile(r"[\s<|\\/>]")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def to_openai_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the ``messages`` of a Chat Completions request.

    Images are sent for users only, as the API has it; elsewhere they become the text ``[image]``. The API has
    no place for `is_error`: the text of the result must say it.
    """
    return [_to_wire(message) for message in messages]


def _to_wire(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role}
    if message.role == "tool":
        return wire | {"tool_call_id": message.tool_call_id or "", "content": plain_text(message)}
    if message.name:
        wire["name"] = _NOT_IN_NAME.sub("_", clean(message.name))[:64]
    if message.role == "user" and not isinstance(message.content, str) and message.content:
        return wire | {"content": [_part(part) for part in message.content]}
    wire["content"] = plain_text(message)
    if message.role == "assistant" and message.tool_calls:
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [_call(call) for call in message.tool_calls]
    return wire


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "text", "text": clean(part.text)}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_as_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def from_openai_message(message: object) -> Message:
    """Return the Message for one Chat Completions message.

    Args:
        message: A response's ``choices[0].message``, or any message of a request, as object or dict. A
            call's arguments stay text, as the model wrote them; a refusal becomes the content.

    Raises:
        DecodeError: The role is unknown, or the value is no message.
    """
    wire = as_mapping(message)
    role = _ROLES.get(str(wire.get("role")))
    if role is None:
        raise DecodeError(f"no message has the role {wire.get('role')!r}; known are {', '.join(_ROLES)}")
    return Message(
        role=role,
        content=_content(wire.get("content") if wire.get("content") is not None else wire.get("refusal")),
        name=wire.get("name"),
        tool_calls=tuple(_call_from(call) for call in wire.get("tool_calls") or ()),
        tool_call_id=wire.get("tool_call_id"),
    )


def _content(content: object) -> str | tuple[Part, ...]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise DecodeError(f"a message's content is text or a list of parts, not a {type(content).__name__}")
    return tuple(_part_from(as_mapping(part)) for part in content)


def _part_from(part: Mapping[str, Any]) -> Part:
    if part.get("type") == "image_url":
        return ImagePart(url=part["image_url"]["url"])
    text = part.get("text", part.get("refusal"))
    if not isinstance(text, str):
        raise DecodeError(f"no content part of jianmu holds a part of type {part.get('type')!r}")
    return TextPart(text=text)


def _call_from(call: object) -> ToolCall:
    wire = as_mapping(call)
    if wire.get("type") == "custom":
        return ToolCall(id=wire["id"], name=wire["custom"]["name"], arguments=wire["custom"]["input"])
    function = cast("Mapping[str, Any]", wire["function"])
    return ToolCall(id=wire.get("id") or "", name=function["name"], arguments=function.get("arguments") or "")
