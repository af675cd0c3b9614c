"""What one call of `run` or `stream` shares with the leaves; none of it is ever saved."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from jianmu.agents.events import AgentEvent
from jianmu.events import RuntimeEventBus
from jianmu.runtime import ReactiveRunner

__all__ = ["Turn"]

T = TypeVar("T")


class Turn:
    """The caller's end of a turn.

    Args:
        emit: Takes each event for the caller.
        deps: What tools get injected; never saved, so pass it again when a turn is resumed.
        event_bus: Where figures without content go.
    """

    def __init__(
        self,
        emit: Callable[[AgentEvent], None] = lambda event: None,
        *,
        deps: Any = None,
        event_bus: RuntimeEventBus | None = None,
    ) -> None:
        self.emit = emit
        self.deps = deps
        self.failure: Exception | None = None
        self.cancelled = False
        self._event_bus = event_bus
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: ReactiveRunner | None = None

    def interrupt(self) -> None:
        """Stop what is under way; the turn ends with what there is."""
        self._stop.set()

    def interrupt_from_any_thread(self) -> None:
        """Do as `interrupt` does, from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is under way any more
                self._loop.call_soon_threadsafe(self.interrupt)

    def cancel(self) -> None:
        """Stop at the last saved step, from any thread."""
        self.cancelled = True
        if self._runner is not None:
            self._runner.cancel()

    async def abort(self, error: Exception) -> NoReturn:
        """Leave the turn where it is saved and let the caller have `error`; the same call goes on from there.

        Raises:
            Exception: `error`, where no agent's runner is under way.
        """
        if self._runner is None:
            raise error
        self.failure = error
        self._runner.cancel()
        while True:  # until the runner cancels this leaf
            await asyncio.Event().wait()

    def enter(self, runner: ReactiveRunner) -> None:
        """Take note of the runner that works from now on, and of its loop."""
        self._loop = asyncio.get_running_loop()
        self._runner = runner

    def begin_next(self) -> None:
        """Begin another turn of the same caller: what interrupted the one before does not touch it."""
        self._stop.clear()

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called."""
        return self._stop.is_set()

    async def unless_interrupted(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Await `work`; return None, with `work` cancelled or never begun, if interrupted first."""
        if self.interrupted:
            work.close()
            return None
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    def report(self, type: str, payload: Mapping[str, Any]) -> None:
        """Put one event on the bus, if there is one."""
        if self._event_bus is not None:
            self._event_bus.emit(type, payload)
