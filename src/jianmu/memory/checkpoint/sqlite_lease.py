"""Who may write a thread of a SQLite file: one row, good until it expires or its process dies."""

from __future__ import annotations

import os
import socket
import sqlite3
import uuid
from collections.abc import Callable

from jianmu.errors import LeaseLostError, ThreadBusyError
from jianmu.storage.sqlite import SqliteFile

__all__ = ["SqliteLease", "check_fence", "take_lease"]


class SqliteLease:
    """The hold on one thread.

    Attributes:
        thread_id: The thread.
        holder: What tells this hold from every other one.
    """

    def __init__(
        self,
        file: SqliteFile,
        key: bytes,
        thread_id: str,
        ttl: float,
        clock: Callable[[], float],
        forget: Callable[[SqliteLease], None],
    ) -> None:
        self.thread_id = thread_id
        self.holder = uuid.uuid4().hex
        self._file, self._key, self._ttl, self._clock, self._forget = file, key, ttl, clock, forget
        self._lost = False

    @property
    def lost(self) -> bool:
        """Whether the lease is known to be lost."""
        return self._lost

    def renew(self) -> None:
        """Hold the thread for the full time again, counted from now.

        Raises:
            LeaseLostError: A successor took over, or the thread was deleted.
        """

        def work(connection: sqlite3.Connection) -> int:
            renewed = connection.execute(
                "UPDATE leases SET expires = ? WHERE thread = ? AND holder = ?",
                (self._clock() + self._ttl, self._key, self.holder),
            )
            return renewed.rowcount

        if self._lost or not self._file.write(work):
            raise self.mark_lost()

    def mark_lost(self) -> LeaseLostError:
        """Note that the thread is no longer ours, and return the error to raise."""
        self._lost = True
        return LeaseLostError(
            f"thread {self.thread_id!r} was taken over by another run or deleted; nothing was written"
        )

    def release(self) -> None:
        """Give the thread back; safe to call twice."""
        self._forget(self)
        if not self._lost:
            self._lost = True
            self._file.write(
                lambda connection: connection.execute(
                    "DELETE FROM leases WHERE thread = ? AND holder = ?", (self._key, self.holder)
                )
            )

    def __enter__(self) -> SqliteLease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def take_lease(
    file: SqliteFile,
    key: bytes,
    thread_id: str,
    ttl: float,
    clock: Callable[[], float],
    forget: Callable[[SqliteLease], None],
) -> SqliteLease:
    """Return the lease on a thread that nobody holds.

    Raises:
        ThreadBusyError: A live holder has it.
    """
    lease = SqliteLease(file, key, thread_id, ttl, clock, forget)

    def work(connection: sqlite3.Connection) -> None:
        _refuse_other_holder(connection, key, thread_id, clock())
        connection.execute(
            "INSERT OR REPLACE INTO leases (thread, holder, host, pid, expires) VALUES (?, ?, ?, ?, ?)",
            (key, lease.holder, socket.gethostname(), os.getpid(), clock() + ttl),
        )

    file.write(work)
    return lease


def check_fence(
    connection: sqlite3.Connection, key: bytes, thread_id: str, lease: SqliteLease | None, now: float
) -> None:
    """Let a write pass only if the thread is ours or nobody's; called inside its transaction.

    Raises:
        LeaseLostError: We held the thread, and somebody else does now.
        ThreadBusyError: We never did, and a live holder does.
    """
    if lease is None:
        _refuse_other_holder(connection, key, thread_id, now)
        return
    ours = connection.execute("SELECT 1 FROM leases WHERE thread = ? AND holder = ?", (key, lease.holder))
    if lease.lost or ours.fetchone() is None:
        raise lease.mark_lost()


def _refuse_other_holder(connection: sqlite3.Connection, key: bytes, thread_id: str, now: float) -> None:
    row = connection.execute("SELECT host, pid, expires FROM leases WHERE thread = ?", (key,)).fetchone()
    if row is not None and row[2] > now and _may_live(row[0], row[1]):
        raise ThreadBusyError(
            f"thread {thread_id!r} is held by process {row[1]} on {row[0]}; "
            "wait for it to end, or use another id"
        )


def _may_live(host: str, pid: int) -> bool:
    """Whether a holder may be alive; of another host's, and where the system does not tell, it may."""
    if host != socket.gethostname() or os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
