"""Checkpoints in one SQLite file that cost what changed: the embedded default for real work."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from jianmu.errors import CheckpointExistsError, CheckpointFormatError, ThreadBusyError
from jianmu.memory.checkpoint.arguments import (
    check_limits,
    check_step,
    check_thread_id,
    no_such_step,
    require_later_step,
)
from jianmu.memory.checkpoint.base import CheckpointInfo, Cipher, JournalRecord
from jianmu.memory.checkpoint.chain import Chain, Head, Row
from jianmu.memory.checkpoint.envelope import make_checkpoint_envelope
from jianmu.memory.checkpoint.journal import live_records
from jianmu.memory.checkpoint.sqlite_lease import SqliteLease, check_fence, take_lease
from jianmu.storage.sqlite import SqliteFile

__all__ = ["SqliteCheckpointer"]

_APPLICATION_ID = 0x4A4D4350  # "JMCP"
_REMEMBERED = 1024
_ROW = "step, previous, snapshot, weight, time, body"

_SCHEMA = (
    """
    CREATE TABLE checkpoints (
        thread BLOB NOT NULL, step INTEGER NOT NULL, previous INTEGER, snapshot INTEGER NOT NULL,
        weight INTEGER NOT NULL, time REAL NOT NULL, body BLOB NOT NULL, PRIMARY KEY (thread, step)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE journal (
        thread BLOB NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (thread, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE leases (
        thread BLOB PRIMARY KEY, holder TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
        expires REAL NOT NULL
    ) WITHOUT ROWID
    """,
)


def _first_schema(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)


_MIGRATIONS = (_first_schema,)


class _StaleHead(Exception):
    """Somebody else has written the thread since this object last did."""


class SqliteCheckpointer:
    """Many threads in one file, each a chain of snapshots and deltas; several processes may use the file.

    A save writes what changed since the last one, and the newest step is read with one statement. Saves of
    several threads that wait together are committed together. Not for network folders.

    Args:
        path: The file; made if missing (0600, its folder 0700).
        durability: "fsync": a save returns when the disk has it. "flush": when the operating system has it,
            which survives a killed process but not a power cut.
        cipher: Seals every record and journal entry; thread ids, steps, times and sizes stay readable.
        timeout: Seconds to wait for another process that is writing.
        clock: Seconds since the epoch, for times and leases.

    Raises:
        ConfigError: Another `durability`, or a path that names no file.
        StorageError: The file cannot be opened or is of another kind.
        CheckpointFormatError: The file was written by a newer jianmu.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ".outputs/jianmu/checkpoints.db",
        *,
        durability: Literal["fsync", "flush"] = "fsync",
        cipher: Cipher | None = None,
        timeout: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = SqliteFile(
            path,
            application_id=_APPLICATION_ID,
            migrations=_MIGRATIONS,
            durability=durability,
            timeout=timeout,
            newer=CheckpointFormatError,
        )
        self._chain = Chain(cipher)
        self._clock = clock
        self._mutex = threading.Lock()
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._leases: dict[str, SqliteLease] = {}

    # The two methods of every checkpointer

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add one step; it is on the disk when this returns (with `durability="flush"`, in the system).

        Raises:
            CheckpointArgumentError: An empty thread id, or a step that is no non-negative int.
            CheckpointExistsError: The thread already has this step or a later one.
            CheckpointCorruptError: The newest record no longer checks, and nothing is put on top of it.
            EncodeError: A value that is not plain JSON data.
            ThreadBusyError: Another run holds the thread.
            LeaseLostError: A successor took over, or the thread was deleted during this run.
            StorageError: The disk refused. After any of these the last good checkpoint is what it was.
        """
        check_thread_id(thread_id)
        check_step(step)
        envelope = make_checkpoint_envelope(step, state_dump, tree_state, runtime_metadata)
        head = self._take_head(thread_id)
        while True:
            if head is not None and step > head.row.step:
                row, after = self._chain.extend(thread_id, head, envelope, self._clock())
            else:
                row, after = self._chain.extend(thread_id, None, envelope, self._clock())
            try:
                self._insert(thread_id, row, head)
            except _StaleHead:
                head = self._load_head(thread_id)
                require_later_step(thread_id, step, None if head is None else head.row.step)
                continue
            self._keep_head(thread_id, after)
            return

    def _insert(self, thread_id: str, row: Row, head: Head | None) -> None:
        key, lease = _key(thread_id), self._leases.get(thread_id)

        def work(connection: sqlite3.Connection) -> None:
            check_fence(connection, key, thread_id, lease, self._clock())
            newest = _newest(connection, key)
            require_later_step(thread_id, row.step, newest)
            if newest != (None if head is None else head.row.step):
                raise _StaleHead
            connection.execute(
                f"INSERT INTO checkpoints (thread, {_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constant
                (key, row.step, row.previous, row.snapshot, row.weight, row.time, row.body),
            )

        self._file.write(work)

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Return the envelope at `step` (None = newest), or None; it is read with one statement.

        Raises:
            CheckpointCorruptError: The record was saved and no longer checks; it names the step before.
            CheckpointFormatError: It is of a newer format.
            CipherError: The key is wrong, or the record was altered or never sealed.
            StorageError: The disk refused.
        """
        check_thread_id(thread_id)
        if step is not None:
            check_step(step)
        rows, before = self._file.read(lambda connection: _segment(connection, _key(thread_id), step))
        return self._chain.envelope(thread_id, rows, before) if rows else None

    # History

    def list_checkpoints(self, thread_id: str, *, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the heads of the saved steps, newest first."""
        check_thread_id(thread_id)
        found = self._file.read(
            lambda connection: connection.execute(
                "SELECT step, time, length(body) FROM checkpoints WHERE thread = ? "
                "ORDER BY step DESC LIMIT ?",
                (_key(thread_id), -1 if limit is None else limit),
            ).fetchall()
        )
        return [CheckpointInfo(step, datetime.fromtimestamp(at, UTC), size) for step, at, size in found]

    def list_threads(self) -> list[str]:
        """Return the ids of all threads, sorted."""
        found = self._file.read(
            lambda connection: connection.execute("SELECT DISTINCT thread FROM checkpoints").fetchall()
        )
        return sorted(_name(key) for (key,) in found)

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread with its journal; return whether there was one.

        A run that holds the thread gets `LeaseLostError` at its next save.
        """
        check_thread_id(thread_id)
        key = _key(thread_id)

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute("DELETE FROM leases WHERE thread = ?", (key,))
            journal = connection.execute("DELETE FROM journal WHERE thread = ?", (key,)).rowcount
            steps = connection.execute("DELETE FROM checkpoints WHERE thread = ?", (key,)).rowcount
            return bool(steps or journal)

        existed = self._file.write(work)
        self._drop_head(thread_id)
        self._file.shrink()
        return existed

    def fork_thread(self, thread_id: str, new_thread_id: str, *, step: int | None = None) -> None:
        """Copy a thread up to and with `step` (None = newest) to a new id; the journal is not copied.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            CheckpointExistsError: The new id is taken.
            CheckpointCorruptError: A record no longer checks.
        """
        check_thread_id(thread_id)
        check_thread_id(new_thread_id)
        source, target = _key(thread_id), _key(new_thread_id)
        lease = self._leases.get(new_thread_id)

        def work(connection: sqlite3.Connection) -> None:
            check_fence(connection, target, new_thread_id, lease, self._clock())
            rows = _rows_until(connection, source, thread_id, step)
            if _newest(connection, target) is not None:
                raise CheckpointExistsError(
                    f"thread {new_thread_id!r} exists; fork to another id, or delete it first"
                )
            connection.execute("DELETE FROM journal WHERE thread = ?", (target,))
            _put(connection, target, [self._chain.move(thread_id, new_thread_id, row) for row in rows])

        self._file.write(work)
        self._drop_head(new_thread_id)

    def truncate_thread(self, thread_id: str, *, step: int) -> int:
        """Drop every step saved after `step` and the journal; return how many were dropped.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            ThreadBusyError: Another run holds the thread.
        """
        check_thread_id(thread_id)
        check_step(step)
        key, lease = _key(thread_id), self._leases.get(thread_id)

        def work(connection: sqlite3.Connection) -> int:
            check_fence(connection, key, thread_id, lease, self._clock())
            if not _has(connection, key, step):
                raise no_such_step(thread_id, step)
            connection.execute("DELETE FROM journal WHERE thread = ?", (key,))
            gone = connection.execute("DELETE FROM checkpoints WHERE thread = ? AND step > ?", (key, step))
            return gone.rowcount

        dropped = self._file.write(work)
        self._drop_head(thread_id)
        self._file.shrink()
        return dropped

    def prune(
        self, thread_id: str, *, keep_last: int | None = None, older_than: datetime | None = None
    ) -> int:
        """Drop old steps, never the newest; return how many. The pages go back to the file system.

        Raises:
            CheckpointArgumentError: Neither limit, or one that means nothing.
            CheckpointCorruptError: A step that later ones are read from no longer checks.
            ThreadBusyError: Another run holds the thread.
        """
        check_thread_id(thread_id)
        check_limits(keep_last, older_than)
        key, lease = _key(thread_id), self._leases.get(thread_id)
        before = None if older_than is None else older_than.timestamp()

        def work(connection: sqlite3.Connection) -> int:
            check_fence(connection, key, thread_id, lease, self._clock())
            heads = connection.execute(
                "SELECT step, time FROM checkpoints WHERE thread = ? ORDER BY step DESC", (key,)
            ).fetchall()
            gone = {at for at, moment in heads[keep_last or 1 :] if before is None or moment < before}
            if gone:
                rows = _rows_until(connection, key, thread_id, None)
                stay = list(self._chain.thin(thread_id, rows, gone))
                connection.execute("DELETE FROM checkpoints WHERE thread = ?", (key,))
                _put(connection, key, stay)
            return len(gone)

        dropped = self._file.write(work)
        if dropped:
            self._drop_head(thread_id)
            self._file.shrink()
        return dropped

    # Journal

    def append_journal(self, thread_id: str, record: JournalRecord) -> None:
        """Keep one answer; durable like a save, and with the same errors."""
        check_thread_id(thread_id)
        key, lease = _key(thread_id), self._leases.get(thread_id)
        body = self._chain.seal_journal(thread_id, record)

        def work(connection: sqlite3.Connection) -> None:
            check_fence(connection, key, thread_id, lease, self._clock())
            _append(connection, key, body)

        self._file.write(work)

    def read_journal(self, thread_id: str) -> list[JournalRecord]:
        """Return the live records in the order of writing.

        Raises:
            CheckpointCorruptError: A record no longer checks.
        """
        check_thread_id(thread_id)
        found = self._file.read(
            lambda connection: connection.execute(
                "SELECT body FROM journal WHERE thread = ? ORDER BY number", (_key(thread_id),)
            ).fetchall()
        )
        return live_records(self._chain.open_journal(thread_id, body) for (body,) in found)

    def trim_journal(self, thread_id: str, keep: Sequence[JournalRecord]) -> None:
        """Replace the journal by `keep`, in one transaction."""
        check_thread_id(thread_id)
        key, lease = _key(thread_id), self._leases.get(thread_id)
        bodies = [self._chain.seal_journal(thread_id, record) for record in keep]

        def work(connection: sqlite3.Connection) -> None:
            check_fence(connection, key, thread_id, lease, self._clock())
            connection.execute("DELETE FROM journal WHERE thread = ?", (key,))
            for body in bodies:
                _append(connection, key, body)

        self._file.write(work)

    # Lease and end

    def acquire(self, thread_id: str, ttl: float = 30.0) -> SqliteLease:
        """Take the thread for `ttl` seconds, renewable; a holder on this host that died is no holder.

        Raises:
            ThreadBusyError: Another live run has it.
        """
        check_thread_id(thread_id)
        with self._mutex:
            if thread_id in self._leases and not self._leases[thread_id].lost:
                raise ThreadBusyError(
                    f"thread {thread_id!r} is held by another run; wait for it to end, or use another id"
                )
        lease = take_lease(self._file, _key(thread_id), thread_id, ttl, self._clock, self._forget)
        with self._mutex:
            self._leases[thread_id] = lease
        return lease

    def close(self) -> None:
        """Give back every lease and close the file; safe to call twice."""
        with self._mutex:
            leases = list(self._leases.values())
        for lease in leases:
            lease.release()
        self._file.close()

    def __enter__(self) -> SqliteCheckpointer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Within

    def _forget(self, lease: SqliteLease) -> None:
        with self._mutex:
            if self._leases.get(lease.thread_id) is lease:
                del self._leases[lease.thread_id]

    def _take_head(self, thread_id: str) -> Head | None:
        with self._mutex:
            return self._heads.pop(thread_id, None)

    def _keep_head(self, thread_id: str, head: Head) -> None:
        with self._mutex:
            self._heads[thread_id] = head
            while len(self._heads) > _REMEMBERED:
                self._heads.popitem(last=False)

    def _drop_head(self, thread_id: str) -> None:
        self._take_head(thread_id)

    def _load_head(self, thread_id: str) -> Head | None:
        rows, before = self._file.read(lambda connection: _segment(connection, _key(thread_id), None))
        return self._chain.resume(thread_id, rows, before) if rows else None


def _key(thread_id: str) -> bytes:
    return thread_id.encode("utf-8", "surrogatepass")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")


def _newest(connection: sqlite3.Connection, key: bytes) -> int | None:
    found = connection.execute("SELECT max(step) FROM checkpoints WHERE thread = ?", (key,)).fetchone()
    return None if found[0] is None else int(found[0])


def _has(connection: sqlite3.Connection, key: bytes, step: int) -> bool:
    found = connection.execute("SELECT 1 FROM checkpoints WHERE thread = ? AND step = ?", (key, step))
    return found.fetchone() is not None


def _segment(connection: sqlite3.Connection, key: bytes, step: int | None) -> tuple[list[Row], int | None]:
    """Read a snapshot and its deltas up to `step` (None = newest), and the step before them."""
    which = "max(step)" if step is None else "step"
    at = "" if step is None else "AND step = ?2"
    found = connection.execute(
        f"""
        WITH last AS (SELECT {which} AS step, snapshot FROM checkpoints WHERE thread = ?1 {at})
        SELECT c.step, c.previous, c.snapshot, c.weight, c.time, c.body FROM checkpoints AS c, last
        WHERE c.thread = ?1 AND c.step BETWEEN last.snapshot AND last.step ORDER BY c.step
        """,  # noqa: S608 - built of constants
        (key,) if step is None else (key, step),
    ).fetchall()
    rows = [Row(*values) for values in found]
    return rows, rows[0].previous if rows else None


def _rows_until(connection: sqlite3.Connection, key: bytes, thread_id: str, step: int | None) -> list[Row]:
    if (_newest(connection, key) is None) if step is None else not _has(connection, key, step):
        raise no_such_step(thread_id, step)
    found = connection.execute(
        f"SELECT {_ROW} FROM checkpoints WHERE thread = ? AND step <= ? ORDER BY step",  # noqa: S608 - constant
        (key, 2**63 - 1 if step is None else step),
    )
    return [Row(*values) for values in found]


def _put(connection: sqlite3.Connection, key: bytes, rows: Sequence[Row]) -> None:
    connection.executemany(
        f"INSERT INTO checkpoints (thread, {_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constant
        [(key, r.step, r.previous, r.snapshot, r.weight, r.time, r.body) for r in rows],
    )


def _append(connection: sqlite3.Connection, key: bytes, body: bytes) -> None:
    connection.execute(
        "INSERT INTO journal (thread, number, body) VALUES "
        "(?1, (SELECT coalesce(max(number), 0) + 1 FROM journal WHERE thread = ?1), ?2)",
        (key, body),
    )
