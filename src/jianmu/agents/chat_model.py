"""What a chat model is: messages and tools in, pieces of one assistant message out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from jianmu.messages import Message
from jianmu.tools import Tool

__all__ = [
    "ChatModel",
    "Completion",
    "Delta",
    "FinishReason",
    "StreamRestarted",
    "TextDelta",
    "ToolCallDelta",
    "Usage",
    "completion_of",
]

FinishReason = Literal["stop", "tool_calls", "length", "filtered", "other"]


class Usage(BaseModel):
    """Tokens of one completion, as the provider counted them.

    Attributes:
        input_tokens: Everything that was sent, cached tokens included.
        output_tokens: Everything that came back.
        cached_tokens: The part of `input_tokens` that the provider's prompt cache served.
        cache_write_tokens: The part of `input_tokens` that the provider put into its cache, where it says so.
    """

    model_config = ConfigDict(frozen=True)

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


class Completion(BaseModel):
    """One whole answer of a model.

    Attributes:
        message: The assistant's message, with its tool calls.
        usage: Tokens; zeros when the provider did not say.
        finish_reason: Why the model stopped; ``"length"`` means that the message is cut off.
        model: The model that answered, as the provider names it.
    """

    model_config = ConfigDict(frozen=True)

    message: Message
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    model: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the tool call at `index`; `id` and `name` come with its first piece."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class StreamRestarted:
    """The stream broke and starts again: what came of this answer before is void."""

    attempt: int
    reason: str


Delta = TextDelta | ToolCallDelta | StreamRestarted


@runtime_checkable
class ChatModel(Protocol):
    """One provider's model.

    `idempotency_key` names the completion: the same key is passed again when a crashed run repeats the
    request, and a provider or gateway that honours it answers from its own record. `stable` says how many
    messages at the beginning will begin the next request too, for a provider that must be told what to cache.
    """

    @property
    def name(self) -> str:
        """The model's name, for events and logs."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> AsyncIterator[Delta | Completion]:
        """Yield deltas as they come and, last, the whole `Completion`.

        Raises:
            ChatModelError: The provider refused, or its answer made no sense, after all retries.
        """
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> Completion:
        """Return the whole answer at once; raises as `stream` does."""
        ...


async def completion_of(stream: AsyncIterator[Delta | Completion]) -> Completion:
    """Run a stream to its end and return its completion.

    Raises:
        ValueError: The stream ended without one; the model breaks its protocol.
    """
    last: Completion | None = None
    async for part in stream:
        if isinstance(part, Completion):
            last = part
    if last is None:
        raise ValueError("the chat model's stream ended without a Completion")
    return last
