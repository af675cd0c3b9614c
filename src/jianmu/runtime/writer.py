"""Calls to a back end, one after the other, off the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["SerialWriter"]


class SerialWriter:
    """Makes one call at a time, in the order of asking; a call once begun is never cut short.

    Args:
        inline: Call on the loop's own thread, for back ends that never wait.
    """

    def __init__(self, *, inline: bool) -> None:
        self._inline = inline
        self._lock = asyncio.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._open: set[asyncio.Task[Any]] = set()

    @property
    def idle(self) -> bool:
        """Whether no call is under way or waiting."""
        return not self._open and not self._lock.locked()

    async def call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what `fn` returns, awaited if it must be.

        A cancelled caller does not stop the call: it goes on, and later calls wait for it.
        """
        if self._inline and not self._lock.locked():
            result = fn(*args, **kwargs)
            if not inspect.isawaitable(result):
                return result
            return await self._shielded(self._await(result))
        return await self._shielded(self._call(fn, args, kwargs))

    async def _shielded(self, coroutine: Any) -> Any:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return await asyncio.shield(task)

    async def _await(self, awaitable: Any) -> Any:
        async with self._lock:
            return await awaitable

    async def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        async with self._lock:
            if self._inline or inspect.iscoroutinefunction(fn):
                result = fn(*args, **kwargs)
            else:
                if self._thread is None:
                    self._thread = ThreadPoolExecutor(1, thread_name_prefix="jianmu-save")
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(self._thread, lambda: fn(*args, **kwargs))
            return await result if inspect.isawaitable(result) else result

    async def close(self) -> None:
        """Wait for calls under way and free the thread."""
        while self._open:
            await asyncio.wait(set(self._open))
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None
