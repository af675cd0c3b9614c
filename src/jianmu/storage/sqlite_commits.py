"""Commits that threads share: every flush of the disk costs the same whether it carries one change or thirty.

The threads that wait together commit together: the first one leads, runs the work of all, and commits once.
Then each wakes the next: woken all at once, they would only queue up for the interpreter.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from jianmu.errors import StorageError
from jianmu.storage.sqlite_errors import is_busy, translated

__all__ = ["Bulk", "SharedCommits", "Work"]

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], T]
"""One thread's statements; it must not commit, and is run again when one that shares its commit fails."""

Bulk = Callable[[sqlite3.Connection, Sequence[Any]], bool]
"""Does for many items what the work of each would do, in one statement that needs no transaction: other
threads run Python all the while. False for several, and each is done by itself, also what is in by then."""

_MAX_BATCH = 256
_LOG_PAGES = 1000  # as is SQLite's own default


class SharedCommits:
    """The one writer of a SQLite file in this process; thread-safe.

    Args:
        connection: Its connection, in autocommit mode.
        name: The file, for messages.
        timeout: Seconds to wait for another process's lock.
    """

    def __init__(self, connection: sqlite3.Connection, *, name: str, timeout: float) -> None:
        self._connection = connection
        self._name = name
        self._timeout = timeout
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._queue: list[_Job[Any]] = []
        self._leader: _Job[Any] | None = None
        self._waits = True
        self._closed = False

    def write(self, work: Work[T], bulk: Bulk | None = None, item: Any = None) -> T:
        """Run `work` in an immediate transaction and return its result.

        Args:
            work: The statements.
            bulk: Does the same for many items; `work` must return whether its item is in.
            item: What `bulk` is to be given for this one.

        Raises:
            StorageError: The disk or the lock refused; nothing was changed.
        """
        job = _Job(work, bulk, item)
        with self._mutex:
            self._check_open()
            self._queue.append(job)
            leads = self._leader is None
            if leads:
                self._leader = job
        try:
            if not leads:
                job.turn.acquire()
            if job.done:
                self._wake_next(job)
            else:
                self._lead()
        except BaseException:  # an interruption must not stop the others
            self._abandon(job)
            raise
        return job.outcome()

    def try_write(self, bulk: Bulk, item: Any) -> bool | None:
        """Let `bulk` do one item, or return None if somebody else is writing.

        It waits for no lock and no flush.
        Only for a file of durability "flush". A `write` must follow now and then: it empties the log.

        Raises:
            StorageError: The disk refused; nothing was changed.
        """
        job: _Job[bool] = _Job(lambda connection: bulk(connection, [item]), bulk, item)
        with self._mutex:
            if self._closed or self._leader is not None:
                return None
            self._leader = job
        try:
            self._set_waiting(wait=False)
            self._commit([job])
        finally:
            self._hand_on()
        return None if is_busy(job.error) else job.outcome()

    def close(self) -> None:
        """Finish what is being written and close the connection; safe to call twice."""
        with self._mutex:
            self._closed = True
            while self._leader is not None:
                self._idle.wait()
            self._connection.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self._name} is closed")

    def _lead(self) -> None:
        """Commit what waits now, then hand the lead to the first that came meanwhile."""
        with self._mutex:
            batch, self._queue = self._queue[:_MAX_BATCH], self._queue[_MAX_BATCH:]
        try:
            self._set_waiting(wait=True)
            self._commit(batch)
        finally:
            with self._mutex:
                for job, following in zip(batch, [*batch[1:], None], strict=True):
                    job.next, job.done = following, True
            self._hand_on()
            self._wake_next(batch[0])

    def _hand_on(self) -> None:
        """Let the first that came meanwhile lead, or nobody."""
        with self._mutex:
            heir = self._leader = self._queue[0] if self._queue else None
            if heir is None:
                self._idle.notify_all()
        if heir is not None:
            heir.wake()

    def _wake_next(self, job: _Job[Any]) -> None:
        """Let the next thread of a batch go on; one that was interrupted meanwhile is passed over."""
        with self._mutex:
            following, job.next = job.next, None
            while following is not None and following.left:
                left, following = following, following.next
                left.next = None
        if following is not None:
            following.wake()

    def _abandon(self, job: _Job[Any]) -> None:
        """Take out the job of a thread that was interrupted while it waited."""
        with self._mutex:
            job.left = True
            if job in self._queue:
                self._queue.remove(job)
            leads = self._leader is job
        self._wake_next(job)
        if leads:
            self._hand_on()

    def _set_waiting(self, *, wait: bool) -> None:
        """Say whether the writer waits for locks, and for the flushes that emptying the log takes."""
        if wait is not self._waits:
            milliseconds, pages = (int(self._timeout * 1000), _LOG_PAGES) if wait else (0, 0)
            with translated(self._name, self._timeout):
                self._connection.execute(f"PRAGMA busy_timeout = {milliseconds}")
                self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._waits = wait

    def _commit(self, batch: Sequence[_Job[Any]]) -> None:
        try:
            if self._commit_together(batch):
                return
        except StorageError as error:
            if len(batch) == 1 or is_busy(error):
                for job in batch:
                    job.error = error
                return
        for job in batch:  # what one of them raised, or what is too big for the disk, is its own affair
            self._commit([job])

    def _commit_together(self, batch: Sequence[_Job[Any]]) -> bool:
        """Run all and commit; return False, with nothing kept, if it must be done one by one."""
        connection = self._connection
        with translated(self._name, self._timeout):
            if batch[0].bulk is not None and all(job.bulk is batch[0].bulk for job in batch):
                return _run_bulk(connection, batch[0].bulk, batch)
            try:
                connection.execute("BEGIN IMMEDIATE")
                kept = _run_all(connection, batch)
                if kept:
                    connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        if not kept and len(batch) > 1:
            return False
        for job in batch:
            job.error = job.raised
        return True


class _Job(Generic[T]):
    """One thread's work, and how it ended."""

    __slots__ = ("bulk", "done", "error", "item", "left", "next", "raised", "result", "turn", "work")

    def __init__(self, work: Work[T], bulk: Bulk | None, item: Any) -> None:
        self.work = work
        self.bulk = bulk
        self.item = item
        self.turn = threading.Lock()  # an event for one waiter, at a tenth of the cost
        self.turn.acquire()
        self.done = False
        self.left = False
        self.next: _Job[Any] | None = None
        self.result: T | None = None
        self.raised: Exception | None = None
        self.error: Exception | None = StorageError(
            "the commit was interrupted; it may have been kept or not"
        )

    def run(self, connection: sqlite3.Connection) -> bool:
        """Return whether the work is to be kept; an error of SQLite itself ends the whole transaction."""
        self.raised = None
        try:
            self.result = self.work(connection)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - it is raised again in the thread whose work it is
            self.raised = error
        return self.raised is None

    def wake(self) -> None:
        """Let the thread go on; once is enough, twice does no harm."""
        if self.turn.locked():
            self.turn.release()

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


def _run_bulk(connection: sqlite3.Connection, bulk: Bulk, batch: Sequence[_Job[Any]]) -> bool:
    """Let `bulk` do all; return False if each has to be done by itself."""
    kept = bulk(connection, [job.item for job in batch])
    if not kept and len(batch) > 1:
        return False
    for job in batch:
        job.result, job.error = kept, None
    return True


def _run_all(connection: sqlite3.Connection, batch: Sequence[_Job[Any]]) -> bool:
    """Run each job, those of one kind together; return whether all are to be kept."""
    alike: dict[Bulk, list[_Job[Any]]] = {}
    for job in batch:
        if job.bulk is not None:
            alike.setdefault(job.bulk, []).append(job)
    single = [job for job in batch if job.bulk is None or len(alike[job.bulk]) == 1]
    for bulk, jobs in alike.items():
        if len(jobs) > 1:
            if not bulk(connection, [job.item for job in jobs]):
                return False
            for job in jobs:
                job.result, job.raised = True, None
    return all(job.run(connection) for job in single)
