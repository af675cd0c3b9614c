"""A bus whose listeners can be slow, or fail, without the run noticing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from jianmu.events.event import RuntimeEvent
from jianmu.events.subscriber import Subscriber

__all__ = ["RuntimeEventBus"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class RuntimeEventBus:
    """Hands each event to every subscriber, in order, on the subscriber's own thread.

    `emit` never waits and never raises: each subscriber has a bounded queue, and an event that finds it
    full is dropped for that subscriber and counted in `dropped`. A subscriber's exception is logged and
    counted in `failed`. All methods are thread-safe.

    Args:
        max_queue: Events that may wait for one subscriber.
        clock: Where an event's time comes from, aware UTC.
    """

    def __init__(self, *, max_queue: int = 10_000, clock: Callable[[], datetime] = _utc_now) -> None:
        self._max_queue = max_queue
        self._clock = clock
        self._lock = threading.Lock()
        self._subscribers: tuple[Subscriber, ...] = ()
        self._gone_dropped = 0
        self._gone_failed = 0

    def subscribe(
        self, fn: Callable[[RuntimeEvent], Any], *, types: Collection[str] | None = None
    ) -> Callable[[], None]:
        """Call `fn(event)` for every event from now on.

        Args:
            fn: A function, or a coroutine function, which then runs on a loop of the subscriber's thread.
            types: Only these event types; None = all. Tick and node events are not even made while nobody
                wants them.

        Returns:
            A function that ends the subscription; events already queued are still delivered.
        """
        subscriber = Subscriber(fn, None if types is None else frozenset(types), self._max_queue)
        with self._lock:
            self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            with self._lock:
                if subscriber in self._subscribers:
                    self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)
                    self._gone_dropped += subscriber.dropped
                    self._gone_failed += subscriber.failed
            subscriber.close()

        return unsubscribe

    def wants(self, type: str) -> bool:
        """Whether anybody would get an event of this type; ask before building a costly payload."""
        return any(subscriber.wants(type) for subscriber in self._subscribers)

    def emit(self, type: str, payload: Mapping[str, Any] | None = None) -> None:
        """Queue one event for every subscriber that wants it.

        Args:
            type: A dotted name.
            payload: Its details; do not change it afterwards.
        """
        takers = [subscriber for subscriber in self._subscribers if subscriber.wants(type)]
        if takers:
            event = RuntimeEvent(type, payload if payload is not None else {}, self._clock())
            for subscriber in takers:
                subscriber.offer(event)

    @property
    def dropped(self) -> int:
        """Events that found a subscriber's queue full."""
        return self._gone_dropped + sum(subscriber.dropped for subscriber in self._subscribers)

    @property
    def failed(self) -> int:
        """Calls of a subscriber that raised."""
        return self._gone_failed + sum(subscriber.failed for subscriber in self._subscribers)

    def drain(self, timeout: float = 2.0) -> bool:
        """Wait until what was emitted so far is delivered.

        Args:
            timeout: Seconds to wait at most, for all subscribers together.

        Returns:
            Whether everything was delivered in time.
        """
        deadline = time.monotonic() + timeout
        return all(s.drain(max(0.0, deadline - time.monotonic())) for s in self._subscribers)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be delivered."""
        return all(subscriber.idle for subscriber in self._subscribers)
