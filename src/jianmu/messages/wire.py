"""What the converters of all providers share."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from jianmu.errors import DecodeError
from jianmu.messages.message import ImagePart, Message, Part, TextPart, ToolCall

__all__ = [
    "CONTINUED",
    "EMPTY",
    "arguments_as_object",
    "arguments_as_text",
    "as_mapping",
    "clean",
    "content_parts",
    "data_url",
    "plain_text",
]

CONTINUED = "[The conversation goes on; its beginning is left out.]"
"""Stands in the user's place where a provider wants a user first and the history begins with the model."""

EMPTY = "[empty message]"
"""Stands for a user's message without content where a provider refuses one."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,", re.ASCII)


def clean(text: str) -> str:
    """Return `text` as it can be sent: half characters, which UTF-8 cannot hold, become U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def content_parts(content: str | tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a content that can be sent; text of nothing but white space is none."""
    parts = (TextPart(text=content),) if isinstance(content, str) else content
    return tuple(part for part in parts if isinstance(part, ImagePart) or part.text.strip())


def plain_text(message: Message) -> str:
    """Return the content as one text, with ``[image]`` where an image cannot be sent."""
    if isinstance(message.content, str):
        return clean(message.content)
    return clean(
        "\n".join(part.text if isinstance(part, TextPart) else "[image]" for part in message.content)
    )


def arguments_as_text(call: ToolCall) -> str:
    """Return the call's arguments as JSON text; text stays as the model wrote it."""
    if isinstance(call.arguments, str):
        return clean(call.arguments)
    return clean(json.dumps(call.arguments, ensure_ascii=False, default=str))


def arguments_as_object(call: ToolCall) -> dict[str, Any]:
    """Return the call's arguments as a JSON object.

    Text that is no JSON object comes back under the one key ``_text``, so that nothing is lost.
    """
    text = arguments_as_text(call)
    try:
        value = json.loads(text, parse_constant=_refuse) if text.strip() else {}
        if isinstance(value, dict):
            again: dict[str, Any] = json.loads(clean(json.dumps(value, ensure_ascii=False)))
            return again
    except (ValueError, RecursionError):
        pass
    return {"_text": text}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def data_url(url: str) -> tuple[str, bytes] | None:
    """Return media type and bytes of a base64 ``data:`` URL, or None for a URL of another kind."""
    match = _DATA_URL.match(url)
    if match is None:
        return None
    try:
        return match[1] or "application/octet-stream", base64.b64decode(url[match.end() :])
    except (binascii.Error, ValueError):
        return None


def as_mapping(message: object) -> Mapping[str, Any]:
    """Return a provider's message as a mapping, be it one or an object of its SDK."""
    if isinstance(message, Mapping):
        return message
    dump = getattr(message, "model_dump", None)
    if not callable(dump):
        kind = type(message).__name__
        raise DecodeError(f"cannot read a message from a {kind}; give a dict or the SDK's response message")
    value: Mapping[str, Any] = dump()
    return value
