"""Waiting, in a worker thread, for what runs in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any

__all__ = ["LoopBridge"]


class LoopBridge:
    """Runs awaitables in a loop for a thread beside it.

    Args:
        loop: The loop; the thread must not be its own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: set[Future[Any]] = set()
        self._closed = False

    def wait(self, value: Awaitable[Any]) -> Any:
        """Return what `value` gives; called in the thread."""
        future = asyncio.run_coroutine_threadsafe(_coroutine(value), self._loop)
        self._pending.add(future)
        # Looked at after the future is known, so that `close` misses none.
        if self._closed:
            future.cancel()
        return future.result()

    def close(self) -> None:
        """Cancel what is still waited for; called in the loop's own thread."""
        self._closed = True
        for future in list(self._pending):
            future.cancel()


async def _coroutine(value: Awaitable[Any]) -> Any:
    return await value
