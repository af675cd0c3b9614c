"""Anthropic's models."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jianmu.agents.anthropic_answer import AnthropicAnswer
from jianmu.agents.chat_model import Completion, Delta, completion_of
from jianmu.agents.provider import LoopClients, Redactor, translated_errors
from jianmu.agents.retry import RetryPolicy, stream_with_retries
from jianmu.agents.wire_names import wire_history
from jianmu.errors import ChatModelError, ConfigError, MissingExtraError
from jianmu.messages import Message, to_anthropic_messages
from jianmu.tools import Tool, ToolSet

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["AnthropicChatModel"]


class AnthropicChatModel:
    """A model behind Anthropic's Messages API.

    One object serves any number of event loops; `aclose()` frees the running loop's connections.

    Args:
        model: The model's name.
        base_url: Another server that speaks the same API; None = ``ANTHROPIC_BASE_URL`` or Anthropic.
        api_key: None = ``ANTHROPIC_API_KEY``.
        max_tokens: The longest answer, in tokens; the API asks for a limit.
        prompt_cache: Whether to mark the part of a prompt that stays from request to request (an agent says
            which), so that Anthropic keeps it: it is read again at a tenth of the price, and written at 1.25
            times the price. https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
        options: More fields of every request; see the provider's reference.
        timeout: Seconds without a byte before an attempt is given up.
        retry: When to try again.

    Raises:
        MissingExtraError: The `anthropic` package is not installed.
        ConfigError: No key.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int = 8192,
        prompt_cache: bool = True,
        options: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retry: RetryPolicy | None = None,
    ) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise MissingExtraError("AnthropicChatModel", "anthropic") from error
        api_key = api_key or os.environ.get("ANTHROPIC_API_KEY")
        if not api_key:
            raise ConfigError(
                "AnthropicChatModel needs api_key=... or the environment variable ANTHROPIC_API_KEY"
            )
        self._sdk = anthropic
        self._model = model
        self._where = base_url or os.environ.get("ANTHROPIC_BASE_URL") or "Anthropic"
        self._options = {"max_tokens": max_tokens, **(options or {})}
        self._prompt_cache = prompt_cache
        self._retry = retry or RetryPolicy()
        self._redact = Redactor(api_key)
        self._clients: LoopClients[AsyncAnthropic] = LoopClients(
            lambda: anthropic.AsyncAnthropic(
                api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0
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
        exported = ToolSet(tools).to_anthropic() if tools else []
        kept = stable if self._prompt_cache else 0
        system, turns = to_anthropic_messages(wire_history(messages), cache=kept)
        request: dict[str, Any] = {**self._options, "model": self._model, "messages": turns}
        if system:  # plain text is what every server of this API takes
            request["system"] = [{"type": "text", "text": system}] if kept else system
        if exported:
            request["tools"] = exported
        if kept and (head := request.get("system") or exported):
            head[-1]["cache_control"] = {"type": "ephemeral"}
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
        answer = AnthropicAnswer()
        errors = translated_errors(self._sdk, self._where, self._redact)
        async with errors, await self._clients.get().messages.create(**request, stream=True) as events:
            async for event in events:
                delta = answer.take(event)
                if delta is not None:
                    yield delta
            completion = answer.completion(tools, self._model) if answer.finished else None
        if completion is None:
            raise ChatModelError(
                f"{self._where} ended its answer too early", kind="connection", retryable=True
            )
        yield completion

    def __repr__(self) -> str:
        return f"AnthropicChatModel({self._model!r}, base_url={self._where!r})"
