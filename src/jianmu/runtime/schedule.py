"""When the next tick comes, and when none can."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from py_trees.common import Status
from py_trees.timers import Timer

from jianmu.errors import LivelockError, StalledError
from jianmu.runtime.leaves import LiveLeaves
from jianmu.runtime.tree import TreeIndex
from jianmu.runtime.wake import Cause, Wake

__all__ = ["Schedule", "calls_for_tick"]

_TICK_CAUSES: frozenset[Cause] = frozenset({"leaf", "state", "timer", "period", "tick"})
_LONGEST_WAIT = 3600.0
"""Seconds; a wall clock may be set while a Timer waits for it."""


def calls_for_tick(causes: set[Cause]) -> bool:
    """Whether one of `causes` calls for a tick."""
    return bool(causes & _TICK_CAUSES)


class Schedule:
    """Waits for the next cause: a turn of the loop after a change, else an event. It never polls.

    Args:
        index: The tree.
        wake: Where causes arrive.
        leaves: Who may still send one.
        tick_period: Seconds between ticks that nothing else causes, or None for none.
        livelock_after: How many ticks in a row the tree may cause by itself.

    Attributes:
        due: Whether the last tick, or a change of the state after it, causes the next one.
    """

    def __init__(
        self, index: TreeIndex, wake: Wake, leaves: LiveLeaves, tick_period: float | None, livelock_after: int
    ) -> None:
        self._index = index
        self._wake = wake
        self._leaves = leaves
        self._period = tick_period
        self._livelock_after = livelock_after
        self._self_caused = 0
        self._last_tick = time.monotonic()
        self.due = True

    def ticked(self, *, changed: bool) -> None:
        """Note a tick.

        Args:
            changed: Whether it changed a status, a counter or a field.

        Raises:
            LivelockError: The tree has caused too many in a row by itself.
        """
        self._last_tick = time.monotonic()
        self.due = changed
        self._self_caused = self._self_caused + 1 if changed else 0
        if self._self_caused > self._livelock_after:
            raise LivelockError(
                f"the tree caused {self._livelock_after} ticks in a row by itself and is still RUNNING; "
                "a Repeat, Retry or counter without end needs a leaf that waits for something"
            )

    async def next_causes(self) -> set[Cause]:
        """Wait for what comes next and return it.

        Raises:
            StalledError: Nothing is left that could come.
        """
        if self.due:
            await asyncio.sleep(0)
            return self._wake.take() | {"tick"}
        delays = self._delays()
        if not delays and not self._leaves.any and not self._wake.pending:
            raise StalledError(self._stall())
        await self._wake.wait(delays)
        causes = self._wake.take()
        if "timer" in causes and not self._a_deadline_has_passed():
            causes.discard("timer")
        if "state" in causes:
            self.due = True  # saved: after a crash nobody would tell of this change again
        if calls_for_tick(causes):
            self._self_caused = 0
        return causes

    def _delays(self) -> dict[Cause, float]:
        delays: dict[Cause, float] = {}
        waits = [_seconds_left(node) for node in self._index.deadlines if node.status is Status.RUNNING]
        if waits:
            # py_trees compares with `>`: a little later, or the tick would come too soon.
            delays["timer"] = min(_LONGEST_WAIT, max(0.0, min(waits)) + 0.001)
        if self._period is not None:
            delays["period"] = self._last_tick + self._period - time.monotonic()
        return delays

    def _a_deadline_has_passed(self) -> bool:
        return any(_seconds_left(node) < 0 for node in self._index.deadlines if node.status is Status.RUNNING)

    def _stall(self) -> str:
        waiting = [
            f"{path} ({node.name!r})"
            for node, path in zip(self._index.nodes, self._index.paths, strict=True)
            if node.status is Status.RUNNING and not node.children
        ]
        return (
            f"the root is RUNNING and nothing is left that could wake it; RUNNING leaves: "
            f"{', '.join(waiting) or 'none'}. Give the runner tick_period= for a leaf that polls, or make it "
            "an async @node that awaits what it waits for"
        )


def _seconds_left(node: Any) -> float:
    now = time.time() if isinstance(node, Timer) else time.monotonic()
    return float(node.finish_time) - now
