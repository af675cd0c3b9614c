"""The OpenAI and Anthropic wire formats, as a server speaks them.

Sources: https://platform.openai.com/docs/api-reference/chat and https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ProviderAnswer", "ProviderRequest", "WireError", "anthropic_wire", "event", "openai_wire"]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


class WireError(ValueError):
    """A request that the real provider would answer with 400."""


@dataclass(frozen=True)
class ProviderAnswer:
    """What the model says.

    Attributes:
        text: Its text; sent in pieces of a few characters when streamed.
        tool_calls: ``(name, arguments)``; arguments given as str are sent as they are.
        input_tokens: For the usage figures.
        output_tokens: For the usage figures.
        finish: Overrides the finish reason, e.g. ``"length"`` or ``"max_tokens"``.
        cache_read: For the usage figures; the server fills it in for requests with `cache_control`.
        cache_write: Likewise.
        raw: JSON of streamed events to send instead, to show what a server of another make does.
    """

    text: str = ""
    tool_calls: tuple[tuple[str, dict[str, Any] | str], ...] = ()
    input_tokens: int = 11
    output_tokens: int = 7
    finish: str | None = None
    cache_read: int = 0
    cache_write: int = 0
    raw: tuple[dict[str, Any], ...] = ()


@dataclass
class ProviderRequest:
    """One request, read from either wire format.

    Attributes:
        wire: ``"openai"`` or ``"anthropic"``.
        body: The JSON as it came.
        idempotency_key: From the header ``Idempotency-Key``.
        user_texts: The texts of the user's messages, oldest first.
        tool_results: ``(call id, text)`` of every tool result, oldest first.
        assistant_turns: How many assistant messages came before.
        tool_names: The tools that were offered.
    """

    wire: str
    body: dict[str, Any]
    idempotency_key: str | None
    user_texts: list[str] = field(default_factory=list)
    tool_results: list[tuple[str, str]] = field(default_factory=list)
    assistant_turns: int = 0
    tool_names: list[str] = field(default_factory=list)


class openai_wire:
    """`POST /v1/chat/completions`."""

    @staticmethod
    def read(body: dict[str, Any], key: str | None) -> ProviderRequest:
        """Read a request.

        Raises:
            WireError: The history or the tools are not what the provider accepts.
        """
        request = ProviderRequest("openai", body, key)
        for tool in body.get("tools") or []:
            _check_tool(tool["function"]["name"], tool["function"].get("parameters"), request)
        waiting: set[str] = set()
        for message in _messages(body):
            role = message["role"]
            if role == "tool":
                if message.get("tool_call_id") not in waiting:
                    raise WireError(
                        "messages with role 'tool' must be a response to a preceding 'tool_calls'"
                    )
                waiting.discard(message["tool_call_id"])
                request.tool_results.append((message["tool_call_id"], _plain(message["content"])))
                continue
            if waiting:
                raise WireError(f"tool_call_ids without a response: {sorted(waiting)}")
            if role == "assistant":
                request.assistant_turns += 1
                for call in message.get("tool_calls") or []:
                    json.loads(call["function"]["arguments"] or "{}")
                    waiting.add(call["id"])
            elif role == "user":
                request.user_texts.append(_plain(message["content"]))
        if waiting:
            raise WireError(f"tool_call_ids without a response: {sorted(waiting)}")
        return request

    @staticmethod
    def whole(answer: ProviderAnswer, model: str, serial: int) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.tool_calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{serial}_{n}",
                    "type": "function",
                    "function": {"name": name, "arguments": _json(args)},
                }
                for n, (name, args) in enumerate(answer.tool_calls)
            ]
        finish = answer.finish or ("tool_calls" if answer.tool_calls else "stop")
        return {
            "id": f"chatcmpl-{serial}",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": openai_wire._usage(answer),
        }

    @staticmethod
    def events(answer: ProviderAnswer, model: str, serial: int) -> Iterator[str]:
        """Yield the server-sent events of a streamed answer."""
        head = {"id": f"chatcmpl-{serial}", "object": "chat.completion.chunk", "created": 1, "model": model}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
            return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(answer.text):
            yield chunk({"content": piece})
        for index, (name, arguments) in enumerate(answer.tool_calls):
            function = {"name": name, "arguments": ""}
            first = {"index": index, "id": f"call_{serial}_{index}", "type": "function", "function": function}
            yield chunk({"tool_calls": [first]})
            for piece in _pieces(_json(arguments)):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, answer.finish or ("tool_calls" if answer.tool_calls else "stop"))
        yield event({**head, "choices": [], "usage": openai_wire._usage(answer)})
        yield "data: [DONE]\n\n"

    @staticmethod
    def error(status: int, message: str) -> dict[str, Any]:
        """Return the body of an error."""
        return {"error": {"message": message, "type": f"error_{status}", "param": None, "code": None}}

    @staticmethod
    def _usage(answer: ProviderAnswer) -> dict[str, Any]:
        return {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
        }


class anthropic_wire:
    """`POST /v1/messages`."""

    @staticmethod
    def read(body: dict[str, Any], key: str | None) -> ProviderRequest:
        """Read a request.

        Raises:
            WireError: The history or the tools are not what the provider accepts.
        """
        request = ProviderRequest("anthropic", body, key)
        if not isinstance(body.get("max_tokens"), int):
            raise WireError("max_tokens: Field required")
        for tool in body.get("tools") or []:
            _check_tool(tool["name"], tool.get("input_schema"), request)
        waiting: set[str] = set()
        for number, message in enumerate(_messages(body)):
            role = message["role"]
            if role not in ("user", "assistant") or (number == 0 and role != "user"):
                raise WireError(f"messages.{number}: unexpected role {role}")
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if waiting != results:
                raise WireError(f"messages.{number}: tool_use and tool_result differ: {waiting ^ results}")
            waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
            request.tool_results.extend(
                (block["tool_use_id"], _plain(block.get("content")))
                for block in blocks
                if block["type"] == "tool_result"
            )
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            if any(not text.strip() for text in texts) or not blocks:
                raise WireError(f"messages.{number}: text content blocks must be non-empty")
            if role == "assistant":
                request.assistant_turns += 1
            elif texts:
                request.user_texts.append("\n".join(texts))
        if waiting:
            raise WireError(f"tool_use ids without tool_result: {sorted(waiting)}")
        return request

    @staticmethod
    def whole(answer: ProviderAnswer, model: str, serial: int) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        for index, (name, arguments) in enumerate(answer.tool_calls):
            content.append(
                {
                    "type": "tool_use",
                    "id": f"toolu_{serial}_{index}",
                    "name": name,
                    "input": json.loads(_json(arguments)),
                }
            )
        return {
            **anthropic_wire._head(model, serial),
            "content": content,
            "stop_reason": answer.finish or ("tool_use" if answer.tool_calls else "end_turn"),
            "usage": anthropic_wire._usage(answer, answer.output_tokens),
        }

    @staticmethod
    def events(answer: ProviderAnswer, model: str, serial: int) -> Iterator[str]:
        """Yield the server-sent events of a streamed answer."""
        usage = anthropic_wire._usage(answer, 1)
        start = {**anthropic_wire._head(model, serial), "content": [], "stop_reason": None, "usage": usage}
        yield event({"type": "message_start", "message": start})
        index = 0
        if answer.text:
            yield from anthropic_wire._block(
                index, {"type": "text", "text": ""}, "text_delta", "text", answer.text
            )
            index += 1
        for number, (name, arguments) in enumerate(answer.tool_calls):
            block = {"type": "tool_use", "id": f"toolu_{serial}_{number}", "name": name, "input": {}}
            yield from anthropic_wire._block(
                index, block, "input_json_delta", "partial_json", _json(arguments)
            )
            index += 1
        reason = answer.finish or ("tool_use" if answer.tool_calls else "end_turn")
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield event(
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.output_tokens}}
        )
        yield event({"type": "message_stop"})

    @staticmethod
    def error(status: int, message: str) -> dict[str, Any]:
        """Return the body of an error."""
        return {"type": "error", "error": {"type": f"error_{status}", "message": message}}

    @staticmethod
    def _head(model: str, serial: int) -> dict[str, Any]:
        return {
            "id": f"msg_{serial}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "stop_sequence": None,
        }

    @staticmethod
    def _usage(answer: ProviderAnswer, output_tokens: int) -> dict[str, Any]:
        return {
            "input_tokens": answer.input_tokens,
            "output_tokens": output_tokens,
            "cache_read_input_tokens": answer.cache_read,
            "cache_creation_input_tokens": answer.cache_write,
        }

    @staticmethod
    def _block(index: int, block: dict[str, Any], kind: str, field_name: str, text: str) -> Iterator[str]:
        yield event({"type": "content_block_start", "index": index, "content_block": block})
        for piece in _pieces(text):
            delta = {"type": kind, field_name: piece}
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise WireError("messages: at least one message is required")
    return messages


def _check_tool(name: str, schema: Any, request: ProviderRequest) -> None:
    if not _TOOL_NAME.match(name):
        raise WireError(f"tools: {name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise WireError(f"tools: the schema of {name!r} must be of type 'object'")
    if name in request.tool_names:
        raise WireError(f"tools: {name!r} is not unique")
    request.tool_names.append(name)


def _plain(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.get("text", "") for block in content)


def _json(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _pieces(text: str, size: int = 4) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def event(data: Any) -> str:
    """Return one server-sent event; `data` is any JSON, for servers that send nonsense."""
    kind = data.get("type") if isinstance(data, dict) else None
    name = f"event: {kind}\n" if isinstance(kind, str) else ""
    text = json.dumps(data, ensure_ascii=False)
    if any("\ud800" <= character <= "\udfff" for character in text):  # half characters travel as escapes
        text = json.dumps(data)
    return f"{name}data: {text}\n\n"
