"""Trying a provider again: how often, and how long to wait."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from jianmu.agents.chat_model import Completion, Delta, StreamRestarted
from jianmu.errors import ChatModelError

__all__ = ["RetryPolicy", "retry_after_seconds", "stream_with_retries"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again: exponential back-off with jitter, never sooner than the provider asked.

    Args:
        attempts: Tries in all; 1 never tries again.
        first_wait: Seconds before the second try; doubles with each further one.
        longest_wait: Seconds at which the doubling ends.
        longest_retry_after: A provider that asks for a longer wait than this is an error at once.
        random: Returns a float in [0, 1); spreads the waits over 50 to 100 % of their length.
        sleep: Waits.
    """

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_retry_after: float = 120.0
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep

    def wait_after(self, attempt: int, error: ChatModelError) -> float | None:
        """Return the seconds to wait after the `attempt`-th failure (from 1), or None to give up."""
        if not error.retryable or attempt >= self.attempts:
            return None
        spread = 0.5 + self.random() / 2
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1)) * spread
        if error.retry_after is None:
            return backoff
        if error.retry_after > self.longest_retry_after:
            return None
        return error.retry_after + min(backoff, 1.0) * self.random()


async def stream_with_retries(
    attempt: Callable[[], AsyncGenerator[Delta | Completion, None]], policy: RetryPolicy
) -> AsyncGenerator[Delta | Completion, None]:
    """Yield what `attempt()` yields, starting it again when it fails in a way that may pass.

    A `StreamRestarted` tells the reader when pieces of a broken attempt were already given out.
    """
    number = 0
    while True:
        number += 1
        started = False
        try:
            async with aclosing(attempt()) as parts:
                async for part in parts:
                    started = True
                    yield part
            return
        except ChatModelError as error:
            wait = policy.wait_after(number, error)
            if wait is None:
                raise
            reason = str(error)
            log.warning("attempt %d failed (%s); trying again in %.1f s", number, error.kind, wait)
        if started:
            yield StreamRestarted(number, reason)
        await policy.sleep(wait)


def retry_after_seconds(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the wait that a response asks for, in seconds, or None.

    Reads ``retry-after-ms``, and ``retry-after`` as seconds or as an HTTP date (RFC 9110, section 10.2.3).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None
