"""What wakes a waiting run."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

__all__ = ["Cause", "Wake"]

Cause = Literal[
    "leaf", "state", "timer", "period", "tick", "answer", "question", "effect", "cancel", "failure"
]
"""Why the run woke: the first five cause a tick, the others only have it look."""


class Wake:
    """Collects causes until the run takes them; bound to the loop that it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._causes: set[Cause] = set()

    def add(self, cause: Cause) -> None:
        """Add a cause; on the loop's thread only."""
        self._causes.add(cause)
        self._event.set()

    def add_from_any_thread(self, cause: Cause) -> None:
        """Add a cause from wherever; without effect once the loop is closed."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self.add(cause)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self.add, cause)

    @property
    def pending(self) -> bool:
        """Whether a cause waits to be taken."""
        return bool(self._causes)

    def has(self, cause: Cause) -> bool:
        """Whether this cause waits to be taken."""
        return cause in self._causes

    def take(self) -> set[Cause]:
        """Return the causes since the last call."""
        causes, self._causes = self._causes, set()
        self._event.clear()
        return causes

    async def wait(self, delays: dict[Cause, float]) -> None:
        """Wait for a cause.

        Args:
            delays: Causes that time itself will bring, with seconds from now.
        """
        handles = [self._loop.call_later(max(0.0, delay), self.add, cause) for cause, delay in delays.items()]
        try:
            await self._event.wait()
        finally:
            for handle in handles:
                handle.cancel()
