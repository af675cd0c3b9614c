"""Chat models that speak OpenAI's Chat Completions API, wherever they run."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jianmu.agents.chat_model import (
    Completion,
    Delta,
    FinishReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    completion_of,
)
from jianmu.agents.provider import LoopClients, Redactor, translated_errors
from jianmu.agents.retry import RetryPolicy, stream_with_retries
from jianmu.agents.wire_names import own_names, wire_history
from jianmu.errors import ChatModelError, ConfigError, MissingExtraError
from jianmu.messages import Message, ToolCall, to_openai_messages
from jianmu.tools import Tool, ToolSet

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OpenAIChatModel"]

_FINISH: dict[str | None, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filtered",
}


class OpenAIChatModel:
    """A model behind OpenAI's wire format, wherever it runs.

    OpenAI, DeepSeek, Qwen, Moonshot, Zhipu, Ollama, vLLM, llama.cpp and many others speak it. One object
    serves any number of event loops; `aclose()` frees the running loop's connections.

    Args:
        model: The model's name, as the server knows it.
        base_url: The server's root, usually ending in ``/v1``; None = ``OPENAI_BASE_URL`` or OpenAI.
        api_key: None = ``OPENAI_API_KEY``; a server at a `base_url` of its own may need none.
        options: More fields of every request, e.g. ``{"temperature": 0}``; see the provider's reference.
        timeout: Seconds without a byte before an attempt is given up.
        retry: When to try again.
        strict_tools: Ask for arguments that match the schema exactly, where the provider can.
        new_id: Makes the id of a tool call that came without one.

    Raises:
        MissingExtraError: The `openai` package is not installed.
        ConfigError: No key, and no `base_url` either.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retry: RetryPolicy | None = None,
        strict_tools: bool = False,
        new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex}",
    ) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError("OpenAIChatModel", "openai") from error
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        api_key = api_key or os.environ.get("OPENAI_API_KEY")
        if not api_key and not base_url:
            raise ConfigError("OpenAIChatModel needs api_key=... or the environment variable OPENAI_API_KEY")
        self._sdk = openai
        self._model = model
        self._where = base_url or "OpenAI"
        self._options = dict(options or {})
        self._retry = retry or RetryPolicy()
        self._strict = strict_tools
        self._new_id = new_id
        self._redact = Redactor(api_key)
        self._clients: LoopClients[AsyncOpenAI] = LoopClients(
            lambda: openai.AsyncOpenAI(
                api_key=api_key or "none", base_url=base_url, timeout=timeout, max_retries=0
            )
        )

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> AsyncGenerator[Delta | Completion, None]:
        """Yield deltas and, last, the `Completion`; see `ChatModel`.

        Raises:
            ChatModelError: The provider refused or could not be reached, after all retries.
        """
        exported = ToolSet(tools).to_openai(strict=self._strict) if tools else []
        request: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            **self._options,
            "model": self._model,
            "messages": to_openai_messages(wire_history(messages)),
            "stream": True,
        }
        if exported:
            request["tools"] = exported
        if idempotency_key:
            request["extra_headers"] = {"Idempotency-Key": idempotency_key}
        parts = stream_with_retries(lambda: self._attempt(request, tools), self._retry)
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> Completion:
        """Return the whole answer; see `ChatModel`."""
        return await completion_of(
            self.stream(messages, tools=tools, idempotency_key=idempotency_key, stable=stable)
        )

    async def aclose(self) -> None:
        """Free the running loop's connections; the next request opens new ones."""
        await self._clients.aclose()

    async def _attempt(
        self, request: dict[str, Any], tools: Sequence[Tool]
    ) -> AsyncGenerator[Delta | Completion, None]:
        answer = _Answer(self._new_id)
        errors = translated_errors(self._sdk, self._where, self._redact)
        async with errors, await self._clients.get().chat.completions.create(**request) as chunks:
            async for chunk in chunks:
                for delta in answer.take(chunk):
                    yield delta
            completion = answer.completion(tools, self._model) if answer.finish is not None else None
        if completion is None:
            raise ChatModelError(
                f"{self._where} ended its answer too early", kind="connection", retryable=True
            )
        yield completion

    def __repr__(self) -> str:
        return f"OpenAIChatModel({self._model!r}, base_url={self._where!r})"


class _Answer:
    """One streamed answer as it grows."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.finish: str | None = None
        self._new_id = new_id
        self._model = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, ToolCall] = {}
        self._usage = Usage()

    def take(self, chunk: Any) -> list[Delta]:
        self._model = chunk.model or self._model
        if chunk.usage is not None:
            cached = getattr(chunk.usage.prompt_tokens_details, "cached_tokens", None)
            if cached is None:  # DeepSeek's own field
                cached = getattr(chunk.usage, "prompt_cache_hit_tokens", None)
            self._usage = Usage(
                input_tokens=chunk.usage.prompt_tokens or 0,
                output_tokens=chunk.usage.completion_tokens or 0,
                cached_tokens=cached or 0,
            )
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        self.finish = choice.finish_reason or self.finish
        delta = choice.delta
        if delta is None:
            return []
        # Several servers put the model's reasoning beside the content, outside OpenAI's own fields.
        self._reasoning.append(getattr(delta, "reasoning_content", None) or "")
        found: list[Delta] = []
        text = delta.content or delta.refusal
        if text:
            self._text.append(text)
            found.append(TextDelta(text))
        for piece in delta.tool_calls or ():
            found.append(self._call(piece))  # noqa: PERF401 - each piece changes the calls so far
        return found

    def _call(self, piece: Any) -> Delta:
        index = piece.index
        if index is None:  # some servers send whole calls without a place
            index = len(self._calls)
        function = piece.function
        name, arguments = (function.name or "", function.arguments or "") if function else ("", "")
        call = self._calls.get(index)
        if call is None:
            call = ToolCall(id=piece.id or self._new_id(), name=name, arguments=arguments)
            self._calls[index] = call
            return ToolCallDelta(index, call.id, name, arguments)
        self._calls[index] = ToolCall(
            id=call.id, name=call.name or name, arguments=f"{call.arguments}{arguments}"
        )
        return ToolCallDelta(index, arguments=arguments)

    def completion(self, tools: Sequence[Tool], model: str) -> Completion:
        calls = own_names((self._calls[index] for index in sorted(self._calls)), tools)
        reasoning = "".join(self._reasoning)
        message = Message(
            role="assistant",
            content="".join(self._text),
            tool_calls=calls,
            metadata={"reasoning": reasoning} if reasoning else {},
        )
        finish = _FINISH.get(self.finish, "other")
        return Completion(
            message=message,
            usage=self._usage,
            finish_reason="tool_calls" if calls and finish == "stop" else finish,
            model=self._model or model,
        )
