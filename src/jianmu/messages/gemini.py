"""Messages as the Gemini API has them (``contents`` of ``generate_content``)."""

from __future__ import annotations

import base64
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

__all__ = ["from_gemini_content", "to_gemini_contents"]


def to_gemini_contents(messages: Iterable[Message]) -> tuple[str, list[dict[str, Any]]]:
    """Return ``system_instruction`` ("" if there is none) and ``contents`` of a request.

    Leading system messages are the instruction, later ones text of the user inside ``<system>`` tags. The
    answers to one turn's calls are one content. Images in ``data:`` URLs are sent as bytes, others by URI.
    """
    items = list(messages)
    count = next((index for index, item in enumerate(items) if item.role != "system"), len(items))
    system = "\n\n".join(text for item in items[:count] if (text := plain_text(item)).strip())
    names: dict[str, str] = {}
    contents: list[dict[str, Any]] = []
    after_result = False
    for message in items[count:]:
        names.update((call.id, call.name) for call in message.tool_calls)
        parts = _parts(message, names)
        if not parts:
            continue
        if not contents and message.role == "assistant":
            contents.append({"role": "user", "parts": [{"text": CONTINUED}]})
        if message.role == "tool" and after_result:
            contents[-1]["parts"].extend(parts)
        else:
            contents.append({"role": "model" if message.role == "assistant" else "user", "parts": parts})
        after_result = message.role == "tool"
    return system, contents


def _parts(message: Message, names: Mapping[str, str]) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [_response(message, names)]
    if message.role == "system":
        text = plain_text(message)
        return [{"text": f"<system>\n{text}\n</system>"}] if text.strip() else []
    if message.role == "user":
        return [_part(part) for part in content_parts(message.content)] or [{"text": EMPTY}]
    text = plain_text(message)
    signatures = message.metadata.get("gemini", {}).get("signatures", {})
    calls = [_call(call, signatures) for call in message.tool_calls]
    return ([{"text": text}] if text.strip() else []) + calls


def _call(call: ToolCall, signatures: Mapping[str, str]) -> dict[str, Any]:
    part: dict[str, Any] = {"function_call": {"name": call.name, "args": arguments_as_object(call)}}
    if call.id:
        part["function_call"]["id"] = call.id
    if call.id in signatures:
        part["thought_signature"] = base64.b64decode(signatures[call.id])
    return part


def _response(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    call_id = message.tool_call_id or ""
    response: dict[str, Any] = {
        "name": names.get(call_id) or message.name or "tool",
        "response": {"error" if message.is_error else "output": plain_text(message)},
    }
    if call_id:
        response["id"] = call_id
    return {"function_response": response}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"text": clean(part.text)}
    data = data_url(part.url)
    if data is None:
        return {"file_data": {"file_uri": part.url}}
    return {"inline_data": {"mime_type": data[0], "data": data[1]}}


def from_gemini_content(content: object) -> Message:
    """Return the Message for a candidate's ``content``.

    A call without an id, as the API sends it, is named ``call_<place>``; its signature is kept in
    ``metadata["gemini"]["signatures"]``, to be sent back. Thoughts are left out.

    Raises:
        DecodeError: The value is no content, or holds a part that a Message cannot.
    """
    wire = as_mapping(content)
    texts: list[Part] = []
    calls: list[ToolCall] = []
    signatures: dict[str, str] = {}
    for part in (as_mapping(part) for part in wire.get("parts") or ()):
        call = part.get("function_call")
        if call is not None:
            call_id = call.get("id") or f"call_{len(calls)}"
            calls.append(ToolCall(id=call_id, name=call["name"], arguments=call.get("args") or {}))
            if part.get("thought_signature"):
                signatures[call_id] = _base64(part["thought_signature"])
        elif not part.get("thought"):
            texts.append(_part_from(part))
    return Message(
        role="user" if wire.get("role") == "user" else "assistant",
        content=texts[0].text if len(texts) == 1 and isinstance(texts[0], TextPart) else tuple(texts) or "",
        tool_calls=tuple(calls),
        metadata={"gemini": {"signatures": signatures}} if signatures else {},
    )


def _base64(value: bytes | str) -> str:
    return value if isinstance(value, str) else base64.b64encode(value).decode("ascii")


def _part_from(part: Mapping[str, Any]) -> Part:
    if isinstance(part.get("text"), str):
        return TextPart(text=part["text"])
    if part.get("inline_data"):
        blob = part["inline_data"]
        return ImagePart(url=f"data:{blob['mime_type']};base64,{_base64(blob['data'])}")
    if part.get("file_data"):
        return ImagePart(url=part["file_data"]["file_uri"])
    held = [key for key, value in part.items() if value is not None]
    raise DecodeError(f"no part of a Message holds a part with {', '.join(held) or 'nothing'}")
