"""How long a failed request waits."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from jianmu.agents.retry import RetryPolicy, retry_after_seconds
from jianmu.errors import ChatModelError

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


def test_retry_after_is_read_in_all_its_forms() -> None:
    assert retry_after_seconds({"retry-after": "3"}) == 3
    assert retry_after_seconds({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    assert retry_after_seconds({"retry-after": "Tue, 01 Dec 2026 12:00:30 GMT"}, NOW) == 30
    assert retry_after_seconds({"retry-after": "Tue, 01 Dec 2026 11:00:00 GMT"}, NOW) == 0
    assert retry_after_seconds({}) is None


@given(st.text())
def test_any_retry_after_is_a_wait_or_nothing(text: str) -> None:
    seconds = retry_after_seconds({"retry-after": text}, NOW)
    assert seconds is None or 0 <= seconds < float("inf")


@given(
    attempt=st.integers(1, 20),
    spread=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.floats(0, 1000),
    retryable=st.booleans(),
)
def test_a_wait_is_never_shorter_than_asked_nor_longer_than_allowed(
    attempt: int, spread: float, asked: float | None, retryable: bool
) -> None:
    policy = RetryPolicy(attempts=8, random=lambda: spread)
    wait = policy.wait_after(attempt, ChatModelError("x", retryable=retryable, retry_after=asked))
    if not retryable or attempt >= 8 or (asked or 0) > policy.longest_retry_after:
        assert wait is None
    elif asked is None:
        assert wait is not None
        assert 0.25 <= wait <= policy.longest_wait
    else:
        assert wait is not None
        assert asked <= wait <= asked + 1
