"""The request models of the real SDKs, as judges of what the converters build."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types import MessageParam
from google.genai import types as gemini
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from jianmu.messages import Message, to_anthropic_messages, to_gemini_contents, to_openai_messages


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def exhaust(value: object) -> None:
    """Read every lazy iterable, which is where pydantic checks its elements."""
    if isinstance(value, str | bytes | int | float | None):
        return
    items: Iterable[object] = value.values() if isinstance(value, Mapping) else value  # type: ignore[assignment]
    for item in items:
        exhaust(item)


def as_the_client_sends(wire: object) -> bytes:
    """Return the body as httpx makes it: strict JSON in UTF-8."""
    return json.dumps(wire, ensure_ascii=False, allow_nan=False).encode("utf-8")


def accepted_by_openai(messages: Iterable[Message]) -> list[dict[str, Any]]:
    wire = to_openai_messages(messages)
    exhaust(_adapter(list[ChatCompletionMessageParam]).validate_python(wire))
    as_the_client_sends(wire)
    open_calls: list[str] = []
    for message in wire:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, "each call is answered before the next message"
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert not open_calls
    return wire


def accepted_by_anthropic(messages: Iterable[Message]) -> tuple[str, list[dict[str, Any]]]:
    system, turns = to_anthropic_messages(messages)
    exhaust(_adapter(list[MessageParam]).validate_python(turns))
    as_the_client_sends([system, *turns])
    roles = [turn["role"] for turn in turns]
    assert roles == ["user" if i % 2 == 0 else "assistant" for i in range(len(roles))]
    seen: set[str] = set()
    uses: list[str] = []
    for turn in turns:
        blocks = turn["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(uses)
        assert all(block["type"] == "tool_result" for block in blocks[: len(results)]), "results come first"
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not seen & set(uses)
        assert len(set(uses)) == len(uses)
        seen |= set(uses)
    assert not uses
    return system, turns


def accepted_by_gemini(messages: Iterable[Message]) -> tuple[str, list[dict[str, Any]]]:
    system, contents = to_gemini_contents(messages)
    calls = 0
    for wire in contents:
        content = gemini.Content.model_validate(wire)
        parts = content.parts or []
        assert parts
        assert sum(part.function_response is not None for part in parts) == calls
        calls = sum(part.function_call is not None for part in parts)
        content.model_dump_json()
    assert not calls
    assert not contents or contents[0]["role"] == "user"
    return system, contents


def accepted_by_all(messages: Iterable[Message]) -> None:
    items = list(messages)
    accepted_by_openai(items)
    accepted_by_anthropic(items)
    accepted_by_gemini(items)
