"""A blocking function on a thread of its own, which nobody has to wait for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from jianmu.errors import ToolError

__all__ = ["on_thread", "start"]

T = TypeVar("T")


def start(function: Callable[[], T], name: str) -> Future[T]:
    """Start `function` on a daemon thread, in a copy of the caller's context variables."""
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits
            future.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - an exit() on this thread must not end the program
            future.set_exception(ToolError(f"{type(error).__name__}: {error}"))
        else:
            future.set_result(result)

    threading.Thread(target=work, daemon=True, name=name).start()
    return future


async def on_thread(function: Callable[[], T], name: str) -> T:
    """Await `function` on a thread; when cancelled, the thread goes on alone and keeps nobody waiting."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    future = start(function, name)

    def wake() -> None:
        if not done.done():
            done.set_result(None)

    def finished(_: Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(wake)

    future.add_done_callback(finished)
    await done
    return future.result()
