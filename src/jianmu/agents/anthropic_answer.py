"""One streamed answer of Anthropic's Messages API as it grows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jianmu.agents.chat_model import Completion, Delta, FinishReason, TextDelta, ToolCallDelta, Usage
from jianmu.agents.wire_names import own_names
from jianmu.messages import Message, ToolCall, from_anthropic_message
from jianmu.tools import Tool

__all__ = ["AnthropicAnswer"]

_FINISH: dict[str | None, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class AnthropicAnswer:
    """Gathers events; a call's arguments are kept as the model wrote them.

    The SDK's own accumulator is not used: it completes arguments that were cut off, so that a tool would run
    with half of a number.

    Source: https://docs.anthropic.com/en/docs/build-with-claude/streaming.
    """

    def __init__(self) -> None:
        self.finished = False
        self._model = ""
        self._stop: str | None = None
        self._usage: dict[str, int] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, str] = {}

    def take(self, event: Any) -> Delta | None:
        """Take one event in; return what a reader may see of it."""
        if event.type == "message_start":
            self._model = event.message.model
            self._count(event.message.usage)
        elif event.type == "content_block_start":
            self._blocks[event.index] = event.content_block.model_dump(warnings=False)
            if event.content_block.type == "tool_use":
                return ToolCallDelta(event.index, event.content_block.id, event.content_block.name)
        elif event.type == "content_block_delta":
            return self._grow(event.index, event.delta)
        elif event.type == "message_delta":
            self._stop = event.delta.stop_reason or self._stop
            self._count(event.usage)
            self.finished = self._stop is not None
        return None

    def _grow(self, index: int, delta: Any) -> Delta | None:
        if delta.type == "input_json_delta":
            self._arguments[index] = self._arguments.get(index, "") + delta.partial_json
            return ToolCallDelta(index, arguments=delta.partial_json)
        name = _GROWING.get(delta.type)
        if name is None:
            return None
        piece = getattr(delta, name)
        self._blocks[index][name] = (self._blocks[index].get(name) or "") + piece
        return TextDelta(piece) if name == "text" else None

    def _count(self, usage: Any) -> None:
        # A later event repeats a figure only when it has changed.
        figures = usage.model_dump(warnings=False) if usage is not None else {}
        self._usage.update({name: value for name, value in figures.items() if isinstance(value, int)})

    def completion(self, tools: Sequence[Tool], model: str) -> Completion:
        """Return the whole answer; `model` is its name when the provider gave none."""
        message = self._message()
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        return Completion(
            message=message.model_copy(update={"tool_calls": own_names(message.tool_calls, tools)}),
            usage=Usage(
                input_tokens=self._usage.get("input_tokens", 0) + read + written,
                output_tokens=self._usage.get("output_tokens", 0),
                cached_tokens=read,
                cache_write_tokens=written,
            ),
            finish_reason=_FINISH.get(self._stop, "other"),
            model=self._model or model,
        )

    def _message(self) -> Message:
        order = sorted(self._blocks)
        calls = [index for index in order if self._blocks[index]["type"] == "tool_use"]
        message = from_anthropic_message(
            {"role": "assistant", "content": [self._blocks[index] for index in order]}
        )
        told = zip(message.tool_calls, calls, strict=True)
        return message.model_copy(
            update={"tool_calls": tuple(self._call(call, index) for call, index in told)}
        )

    def _call(self, call: ToolCall, index: int) -> ToolCall:
        text = self._arguments.get(index, "")
        return call.model_copy(update={"arguments": _read(text)}) if text.strip() else call


def _read(text: str) -> Mapping[str, Any] | str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
