"""Messages as the Anthropic Messages API has them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from jianmu.errors import DecodeError
from jianmu.messages.message import ImagePart, Message, Part, TextPart, ToolCall
from jianmu.messages.wire import (
    CONTINUED,
    EMPTY,
    arguments_as_object,
    as_mapping,
    clean,
    content_parts,
    data_url,
    plain_text,
)

__all__ = ["from_anthropic_message", "to_anthropic_messages"]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_KEPT_BLOCKS = ("thinking", "redacted_thinking")


def to_anthropic_messages(messages: Iterable[Message], *, cache: int = 0) -> tuple[str, list[dict[str, Any]]]:
    """Return ``system`` and ``messages`` of a request; `system` is "" if there is none.

    The API takes one system prompt and turns that alternate, the user's first. So leading system messages are
    joined, later ones become text of the user's turn inside ``<system>`` tags, tool results are blocks of the
    user's turn, and neighbours of one role are one turn. Call ids outside ``[a-zA-Z0-9_-]`` or used twice are
    replaced on both sides. Thinking blocks that `from_anthropic_message` kept are sent back.

    Args:
        messages: The messages.
        cache: How many of them at the beginning stay the same in the next request, as ``BuiltContext.stable``
            has it; the last block of these is marked, so that the API keeps all before it in its cache.
    """
    items = list(messages)
    system, rest = _split_system(items)
    volatile = {id(message) for message in items[cache:]}
    stable: dict[str, Any] | None = None
    ids = _CallIds()
    turns: list[dict[str, Any]] = []
    for message in rest:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, ids)
        if not blocks:
            continue
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [{"type": "text", "text": CONTINUED}]})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
        if id(message) not in volatile and blocks[-1]["type"] not in _KEPT_BLOCKS:
            stable = blocks[-1]
    if stable is not None:
        stable["cache_control"] = {"type": "ephemeral"}
    return system, turns


def _split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    count = 0
    while count < len(messages) and messages[count].role == "system":
        count += 1
    texts = [plain_text(message) for message in messages[:count]]
    return "\n\n".join(text for text in texts if text.strip()), messages[count:]


class _CallIds:
    """Gives every call an id of the API's alphabet that no other call of the request has."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._open: dict[str, str] = {}

    def of_call(self, call_id: str) -> str:
        digest = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()
        wire_id = call_id if _ID.fullmatch(call_id) else f"c_{digest[:24]}"
        unique, count = wire_id, 1
        while unique in self._used:
            count += 1
            unique = f"{wire_id}_{count}"
        self._used.add(unique)
        self._open[call_id] = unique
        return unique

    def of_result(self, call_id: str) -> str:
        return self._open.get(call_id, call_id)


def _blocks(message: Message, ids: _CallIds) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [_result(message, ids)]
    if message.role == "system":
        text = plain_text(message)
        return [{"type": "text", "text": f"<system>\n{text}\n</system>"}] if text.strip() else []
    if message.role == "user":
        return [_part(part) for part in content_parts(message.content)] or [{"type": "text", "text": EMPTY}]
    kept = message.metadata.get("anthropic", {}).get("blocks", ())
    blocks: list[dict[str, Any]] = [dict(block) for block in kept]
    text = plain_text(message)
    if text.strip():
        blocks.append({"type": "text", "text": text})
    for call in message.tool_calls:
        use = {"type": "tool_use", "id": ids.of_call(call.id), "name": call.name}
        blocks.append(use | {"input": arguments_as_object(call)})
    return blocks


def _result(message: Message, ids: _CallIds) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids.of_result(message.tool_call_id or "")}
    parts = [_part(part) for part in content_parts(message.content)]
    if parts:
        block["content"] = parts
    if message.is_error:
        block["is_error"] = True
    return block


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": clean(part.text)}
    data = data_url(part.url)
    if data is None:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": data[0], "data": base64.b64encode(data[1]).decode("ascii")}
    return {"type": "image", "source": source}


def from_anthropic_message(message: object) -> Message:
    """Return the Message for a response of the Messages API, or for a turn of text, images and calls.

    Args:
        message: The response, or one element of a request's ``messages``, as object or dict. Thinking blocks
            are kept in ``metadata["anthropic"]["blocks"]``, to be sent back.

    Raises:
        DecodeError: The value is no message, or holds a block that a Message cannot (a ``tool_result`` is a
            message of its own here).
    """
    wire = as_mapping(message)
    role, content = wire.get("role"), wire.get("content")
    if role not in ("user", "assistant"):
        raise DecodeError(f"no turn has the role {role!r}; known are user, assistant")
    if isinstance(content, str):
        return Message(role=role, content=content)
    blocks = [as_mapping(block) for block in content or ()]
    kept = [_without_none(block) for block in blocks if block.get("type") in _KEPT_BLOCKS]
    calls = tuple(
        ToolCall(id=block["id"], name=block["name"], arguments=block.get("input") or {})
        for block in blocks
        if block.get("type") == "tool_use"
    )
    parts = tuple(_part_from(b) for b in blocks if b.get("type") not in (*_KEPT_BLOCKS, "tool_use"))
    return Message(
        role=role,
        content=parts[0].text if len(parts) == 1 and isinstance(parts[0], TextPart) else parts or "",
        tool_calls=calls,
        metadata={"anthropic": {"blocks": kept}} if kept else {},
    )


def _without_none(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None}


def _part_from(block: Mapping[str, Any]) -> Part:
    if block.get("type") == "text":
        return TextPart(text=block["text"])
    if block.get("type") == "image":
        source = as_mapping(block["source"])
        if source.get("type") == "base64":
            return ImagePart(url=f"data:{source['media_type']};base64,{source['data']}")
        return ImagePart(url=source["url"])
    raise DecodeError(f"no part of a Message holds a block of type {block.get('type')!r}")
