"""What one call of `run` or `stream` shares with the leaves; none of it is ever saved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from jianmu.agents.events import AgentEvent
from jianmu.events import RuntimeEventBus

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
        self._event_bus = event_bus
        self._stop = asyncio.Event()

    def interrupt(self) -> None:
        """Stop what is under way; the turn ends with what there is."""
        self._stop.set()

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
