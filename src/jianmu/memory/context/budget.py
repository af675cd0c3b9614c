"""How many tokens a prompt may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jianmu.errors import ConfigError
from jianmu.memory.context.counting import (
    MessageCounter,
    Overhead,
    TokenCounter,
    default_counter,
    openai_image_tokens,
)
from jianmu.messages import ImagePart, Message

__all__ = ["TokenBudget"]


class TokenBudget:
    """A limit and the one counter that everything sent is measured by.

    Args:
        max_tokens: The model's window, or what you want to spend of it.
        reserve_output: Tokens of `max_tokens` that are left for the reply.
        counter: Counts text; the best that is installed by default (see `default_counter`).
        overhead: What the provider's framing costs.
        image_tokens: What an image costs; `openai_image_tokens` or `anthropic_image_tokens`.
        correction: Real tokens per counted token, for a model whose tokenizer differs from the counter's; see
            `corrected`.
        block: The part of the history's share that is dropped at once when the history outgrows it, so that
            the prompt's beginning stays the same for many turns.

    Raises:
        ConfigError: A number is out of its range.
    """

    def __init__(
        self,
        max_tokens: int,
        reserve_output: int = 0,
        *,
        counter: TokenCounter | None = None,
        overhead: Overhead | None = None,
        image_tokens: Callable[[ImagePart], int] = openai_image_tokens,
        correction: float = 1.0,
        block: float = 0.25,
    ) -> None:
        if max_tokens < 0 or reserve_output < 0:
            raise ConfigError(
                f"max_tokens={max_tokens} and reserve_output={reserve_output} must not be negative"
            )
        if not 0 < correction < math.inf:
            raise ConfigError(f"correction={correction} must be a positive number")
        if not 0 < block <= 1:
            raise ConfigError(f"block={block} must lie in (0, 1]")
        self.max_tokens = max_tokens
        self.reserve_output = reserve_output
        self.correction = correction
        self.block = block
        self.counter = MessageCounter(
            counter or default_counter(), overhead=overhead, image_tokens=image_tokens
        )

    def __repr__(self) -> str:
        return (
            f"TokenBudget({self.max_tokens}, reserve_output={self.reserve_output}, "
            f"counter={self.counter.name!r}, correction={self.correction:g})"
        )

    @property
    def available(self) -> int:
        """Tokens, as counted, that a whole request may have."""
        return max(0, math.floor((self.max_tokens - self.reserve_output) / self.correction))

    def count(self, messages: Iterable[Message], tools: Iterable[object] = ()) -> int:
        """Return what a request with these messages and tool schemas costs, as counted."""
        return self.counter.request(messages, tools)

    def corrected(self, *, counted: int, actual: int) -> TokenBudget:
        """Return this budget with the correction that a provider's own usage figure asks for.

        Args:
            counted: What was counted for a request: ``built.report.total``.
            actual: What the provider says its input was: ``usage.prompt_tokens`` or ``usage.input_tokens``,
                with what it read from its cache.

        The ratio is rounded up to the next 2 %, so that small changes from turn to turn move nothing.

        Raises:
            ConfigError: A figure is not positive.
        """
        if counted <= 0 or actual <= 0:
            raise ConfigError(f"counted={counted} and actual={actual} must be positive")
        other = TokenBudget.__new__(TokenBudget)
        other.__dict__.update(self.__dict__)
        other.correction = math.ceil(actual / counted * 50 - 1e-9) / 50
        return other
