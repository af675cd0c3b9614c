"""The events of a run, as it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import Self

from jianmu.agents.events import AgentEvent
from jianmu.agents.turn import Turn

__all__ = ["AgentStream"]


class AgentStream:
    """Events in order; iterate it once, best inside ``async with``, which cancels what is left at the end.

    Args:
        work: Runs the turns and reports to the `Turn` that it is given.
        turn: Makes that Turn from the function that takes events.
    """

    def __init__(
        self,
        work: Callable[[Turn], Awaitable[None]],
        turn: Callable[[Callable[[AgentEvent], None]], Turn],
    ) -> None:
        self._queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._work = work
        self._turn = turn(self._queue.put_nowait)
        self._task: asyncio.Task[None] | None = None

    def interrupt(self) -> None:
        """End the turn properly and soon: the model's answer so far is kept, running tools are cancelled.

        It is the turn under way that ends: when `stream` ends an older turn first, the new one still follows.
        Call it from the event loop's thread; from another use ``loop.call_soon_threadsafe``.
        """
        self._turn.interrupt()

    async def aclose(self) -> None:
        """Cancel the run if it is still going; its last saved step is where it goes on."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def __aiter__(self) -> AsyncGenerator[AgentEvent, None]:
        return self._events()

    async def _events(self) -> AsyncGenerator[AgentEvent, None]:
        if self._task is not None:
            raise RuntimeError("an AgentStream can be iterated once; call stream() again")
        self._task = asyncio.create_task(self._run(), name="agent turn")
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            await self._task
        finally:
            await self.aclose()

    async def _run(self) -> None:
        try:
            await self._work(self._turn)
        finally:
            self._queue.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
