"""One activation of a leaf: its task, its buffered updates, its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from py_trees.common import Status

from jianmu.errors import RunError
from jianmu.runtime.ctx import LeafContext
from jianmu.tools.ambient import current_idempotency_key

if TYPE_CHECKING:
    from jianmu.runtime.leaf import AsyncNode
    from jianmu.runtime.session import Session

__all__ = ["Activity", "LeafReturn"]

logger = logging.getLogger(__name__)

LeafReturn = bool | Status | Mapping[str, Any] | None
"""None or True = SUCCESS, False = FAILURE, a Status = itself, a mapping = a state update and SUCCESS."""


class LeafCode(Protocol):
    """What runs in an activation."""

    def __call__(self, ctx: LeafContext, /) -> Awaitable[LeafReturn] | LeafReturn: ...


class Activity:
    """The work of one activation; its task starts only after the tick that began it is committed.

    Args:
        session: The run it belongs to.
        leaf: Its leaf.
        context: What its code gets to see of the run.
    """

    def __init__(self, session: Session, leaf: AsyncNode, context: type[LeafContext] = LeafContext) -> None:
        self._session = session
        self._leaf = leaf
        self.path = path = session.index.path_of[id(leaf)]
        self.number = leaf.activation
        self.ctx = context(session, leaf, path)
        self.task: asyncio.Task[LeafReturn] | None = None
        self.cancelled = False
        self.taken = False
        self._reported = False

    @property
    def done(self) -> bool:
        """Whether the code has ended, so that a tick would take its result."""
        return self.task is not None and self.task.done() and not self.cancelled and not self.taken

    @property
    def working(self) -> bool:
        """Whether the code runs, so that its end will wake the run."""
        return self.task is not None and not self._reported

    @property
    def settled(self) -> bool:
        """Whether nothing more comes of it: a tick took its result, or it was cancelled and has ended."""
        return self.taken or (self.cancelled and not self.working)

    def start(self) -> None:
        """Let the code run."""
        self.task = asyncio.get_running_loop().create_task(
            self._main(), name=f"leaf {self.path} {self._leaf.name}"
        )
        self.task.add_done_callback(self._report)

    def _report(self, task: asyncio.Task[LeafReturn]) -> None:
        self._reported = True  # a turn of the loop after the task is done
        self._session.wake.add("leaf")

    async def _main(self) -> LeafReturn:
        current_idempotency_key.set(self.ctx.idempotency_key)
        return await self._leaf.run(self.ctx)

    def poll(self) -> Status:
        """Return the leaf's status; at its end, commit what it buffered."""
        if self.task is None or not self.task.done():
            return Status.RUNNING
        self.taken = True
        try:
            result = self.task.result()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a leaf may raise anything
            return self.fail(error)
        return self.conclude(result)

    def conclude(self, result: LeafReturn) -> Status:
        """Commit the buffer and `result`; return the status that `result` means."""
        self.ctx.close()
        try:
            status, update = _read(result, self._leaf.name)
            self._session.commit([*self.ctx.updates, *([update] if update else [])])
        except Exception as error:  # noqa: BLE001 - a refused update or reducer fails the leaf, not the run
            return self.fail(error)
        return status

    def fail(self, error: BaseException) -> Status:
        """Drop the buffer, keep the error, tell the bus."""
        self.ctx.close()
        self._leaf.error = error
        self._session.leaf_failed(self.path, self._leaf, error)
        return Status.FAILURE

    def cancel(self) -> None:
        """Interrupt the code and drop what it buffered."""
        self.cancelled = True
        self.ctx.close()
        if self.task is not None and not self.task.done():
            self.task.cancel()


def _read(result: LeafReturn, name: str) -> tuple[Status, Mapping[str, Any] | None]:
    if result is None or result is True:
        return Status.SUCCESS, None
    if result is False:
        return Status.FAILURE, None
    if isinstance(result, Status) and result in (Status.SUCCESS, Status.FAILURE):
        return result, None
    if isinstance(result, Mapping):
        return Status.SUCCESS, result
    given: object = result
    shown = given if isinstance(given, Status) else type(given).__name__
    raise RunError(
        f"leaf {name!r} returned {shown}; return None, a bool, SUCCESS, FAILURE or a dict of updates"
    )
