"""One listener of the bus: a bounded queue and a thread that lives while there is something to deliver."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from jianmu.events.event import RuntimeEvent

__all__ = ["Subscriber"]

logger = logging.getLogger(__name__)


class Subscriber:
    """Delivers events to one function, in order, off the emitter's thread.

    The thread is a daemon, started when an event arrives and ended when it has been idle for a while, so
    that a bus needs no `close`.
    """

    _LINGER = 0.5

    def __init__(
        self, fn: Callable[[RuntimeEvent], Any], types: frozenset[str] | None, max_queue: int
    ) -> None:
        self._fn = fn
        self._types = types
        self._max_queue = max_queue
        self._queue: deque[RuntimeEvent] = deque()
        self._changed = threading.Condition()
        self._working = False
        self._closed = False
        self.dropped = 0
        self.failed = 0

    def wants(self, type: str) -> bool:
        """Whether this type was subscribed to."""
        return self._types is None or type in self._types

    def offer(self, event: RuntimeEvent) -> None:
        """Queue the event, or count it as dropped."""
        with self._changed:
            if self._closed:
                return
            if len(self._queue) >= self._max_queue:
                self.dropped += 1
                return
            self._queue.append(event)
            if self._working:
                self._changed.notify_all()
            else:
                self._working = True
                threading.Thread(target=self._work, name="jianmu-events", daemon=True).start()

    def close(self) -> None:
        """Take no more; what is queued is still delivered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._queue

    def drain(self, timeout: float) -> bool:
        """Wait until nothing waits; return whether that came in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue, timeout)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed, self._LINGER)
                if not self._queue:
                    self._working = False
                    return
                event = self._queue[0]
            self._deliver(event)
            with self._changed:
                # Only now: an event counts as waiting until its subscriber has returned.
                self._queue.popleft()
                self._changed.notify_all()

    def _deliver(self, event: RuntimeEvent) -> None:
        try:
            outcome = self._fn(event)
            if inspect.iscoroutine(outcome):
                asyncio.run(outcome)
        except Exception as error:  # a subscriber may raise anything, and the run goes on
            self.failed += 1
            logger.warning("a subscriber of %s events failed: %s", event.type, type(error).__name__)
            logger.debug("the subscriber's traceback", exc_info=error)
