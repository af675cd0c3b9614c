"""The leaves of one run that are under way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

from py_trees.common import Status

from jianmu.runtime.activity import Activity
from jianmu.runtime.leaf import AsyncNode
from jianmu.runtime.tree import TreeIndex
from jianmu.runtime.wake import Wake

__all__ = ["LiveLeaves"]

logger = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds that cancelled leaves get for their own clean-up."""


class LiveLeaves:
    """Starts leaves after the tick that reached them is committed, and stops them.

    Args:
        index: The tree.
        wake: Told when an effect ends.
    """

    def __init__(self, index: TreeIndex, wake: Wake) -> None:
        self._index = index
        self._wake = wake
        self._begun: list[Activity] = []
        self._live: list[Activity] = []
        self._effects = 0

    def add(self, activity: Activity) -> None:
        """Take an activity that is to start at the next `start`."""
        self._begun.append(activity)

    def resume(self) -> None:
        """Begin once more the activations that the checkpoint left RUNNING."""
        for leaf in self._index.leaves:
            if leaf.status is Status.RUNNING:
                leaf.resume()

    def start(self) -> None:
        """Let those run that were added since the last call."""
        begun, self._begun = self._begun, []
        for activity in begun:
            if not activity.cancelled:
                activity.start()
                self._live.append(activity)

    def sweep(self) -> None:
        """Forget those of which nothing more will come."""
        self._live = [activity for activity in self._live if not activity.settled]

    @property
    def any(self) -> bool:
        """Whether something may still come of one."""
        return bool(self._live)

    @property
    def any_done(self) -> bool:
        """Whether one has ended whose result no tick has taken."""
        return any(activity.done for activity in self._live)

    def has_ended(self, path: str, activation: int) -> bool:
        """Whether that activation is over as of the last tick."""
        leaf: AsyncNode | None = self._index.leaf_at.get(path)
        if leaf is None or leaf.activation > activation:
            return True
        return leaf.activation == activation and leaf.status is not Status.RUNNING

    @contextlib.contextmanager
    def effect_under_way(self) -> Iterator[None]:
        """Count a `once` call while it lasts."""
        self._effects += 1
        try:
            yield
        finally:
            self._effects -= 1
            self._wake.add("effect")

    async def drain_effects(self, timeout: float) -> None:
        """Wait until no `once` call is under way, `timeout` seconds at most, and let their leaves go on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._effects:
                    self._wake.take()
                    await self._wake.wait({})
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Interrupt what is RUNNING, each node once, and wait for the leaves' own clean-up."""
        if self._index.root.status is Status.RUNNING:
            self._index.root.stop(Status.INVALID)
        for activity in self._live:
            activity.cancel()
        tasks = [activity.task for activity in self._live if activity.task is not None]
        if not tasks:
            return
        ended, slow = await asyncio.wait(tasks, timeout=_PATIENCE)
        for task in slow:
            logger.warning("%s goes on although it was cancelled", task.get_name())
        for task in ended:
            if not task.cancelled():
                task.exception()  # looked at, so that asyncio does not report it as never retrieved
