"""Who may write a thread's file: one lease, held by the operating system for as long as its process lives.

There are two lock files. ``.lease`` belongs to the writer, for a run or for one save. Who wants it first
takes ``.lock`` for a moment, so that a save without a lease waits for another such save, but not for a run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jianmu.errors import LeaseLostError, ThreadBusyError
from jianmu.storage.line_log import FileId
from jianmu.storage.locks import OsLock, hold

__all__ = ["PATIENCE", "FileLease", "busy", "take_lease"]

PATIENCE = 10.0
"""Seconds to wait for another save that is under way."""


class FileLease:
    """The hold on one thread's file.

    Attributes:
        thread_id: The thread.
        file: The checkpoint file as this holder last saw it; None before its first save.
    """

    def __init__(
        self,
        thread_id: str,
        lock: OsLock,
        identify: Callable[[], FileId | None],
        forget: Callable[[FileLease], None],
    ) -> None:
        self.thread_id = thread_id
        self.file = identify()
        self._lock = lock
        self._identify = identify
        self._forget = forget
        self._lost = False

    @property
    def lost(self) -> bool:
        """Whether the thread was deleted, or the lock file taken away, as far as was seen."""
        return self._lost

    def renew(self) -> None:
        """Check that the thread is still ours; the operating system holds it without a time limit.

        Raises:
            LeaseLostError: The thread was deleted or put in another's place, or the lock file was removed.
        """
        if not self._lost:
            now = self._identify()
            same = now is self.file or (
                now is not None and self.file is not None and now.same_file(self.file)
            )
            self._lost = not (same and self._lock.held)
        if self._lost:
            raise lost(self.thread_id)

    def mark_lost(self) -> LeaseLostError:
        """Note that the thread is no longer ours, and return the error to raise."""
        self._lost = True
        return lost(self.thread_id)

    def release(self) -> None:
        """Give the thread back; safe to call twice."""
        self._lock.release()
        self._forget(self)

    def __enter__(self) -> FileLease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def lost(thread_id: str) -> LeaseLostError:
    """Return the error for a holder that is none any more."""
    return LeaseLostError(
        f"thread {thread_id!r} was deleted or replaced during this run; nothing was written"
    )


def busy(thread_id: str) -> ThreadBusyError:
    """Return the error for a thread that another holds."""
    return ThreadBusyError(
        f"thread {thread_id!r} is held by another run; wait for it to end, or use another thread id"
    )


def take_lease(thread_id: str, gate: Path, lease: Path) -> OsLock:
    """Return the held lease lock.

    Args:
        thread_id: For the error.
        gate: The ``.lock`` file.
        lease: The ``.lease`` file.

    Raises:
        ThreadBusyError: Another run holds the thread, or a save takes longer than 10 seconds.
    """
    lock = OsLock(lease)
    with hold(gate, PATIENCE) as passed:
        if not passed or not lock.take():
            raise busy(thread_id)
    return lock
