"""One SQLite file for many threads and processes: durable, private, with commits that are shared.

Every flush of the disk costs the same whether it carries one change or thirty. So `SqliteFile.write` lets the
threads that wait together commit together: the first one leads, runs the work of all, and commits once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from jianmu.errors import ConfigError, JianmuError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Durability", "Migration", "SqliteFile", "is_damage"]

T = TypeVar("T")

Durability = Literal["fsync", "flush"]
"""``fsync`` survives power loss; ``flush`` survives the death of the process."""

Migration = Callable[[sqlite3.Connection], None]
"""Leads a file from one schema version to the next; the first one makes the tables."""

_MAX_BATCH = 256
_LOG_PAGES = 1000  # as is SQLite's own default
_SYNCHRONOUS = {"fsync": "FULL", "flush": "NORMAL"}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqliteFile:
    """A SQLite database in WAL mode.

    Thread-safe, and several processes may have the same file open. Not for network folders: WAL needs shared
    memory between its users.

    Args:
        path: The file; it and its folder are made if missing (0600 and 0700).
        application_id: A 31-bit number that tells this kind of content from others. One file may hold several
            kinds, e.g. checkpoints and memories, whose tables have different names.
        migrations: One step per schema version, oldest first.
        durability: What a finished `write` survives.
        timeout: Seconds to wait for another process's lock.
        prepare: Run on each new connection, e.g. to add a function.
        newer: The error for a file of a newer schema version.

    Raises:
        ConfigError: An unknown durability, or a path that is no file.
        StorageError: The file cannot be opened, or is of another kind.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        application_id: int,
        migrations: Sequence[Migration],
        durability: Durability = "fsync",
        timeout: float = 30.0,
        prepare: Callable[[sqlite3.Connection], None] | None = None,
        newer: type[JianmuError] = StorageError,
    ) -> None:
        if durability not in _SYNCHRONOUS:
            raise ConfigError(f"durability is 'fsync' or 'flush', not {durability!r}")
        name = os.fspath(path)
        if not name or name.startswith((":memory:", "file:")) or "\0" in name:
            raise ConfigError(f"path must name a file, not {name!r}; nothing in RAM can be durable")
        self.path = Path(name).absolute()
        self.timeout = timeout
        self._synchronous = _SYNCHRONOUS[durability]
        self._prepare = prepare
        self._pid = 0
        self._closed = False
        self._leading = False
        self._queue: list[_Job[Any]] = []
        self._readers: list[sqlite3.Connection] = []
        self._start()
        with self._translated():
            _create_private(self.path)
            self._writer = self._connect()
            try:
                self._migrate(self._writer, application_id, migrations, newer)
            except BaseException:
                self._writer.close()
                raise

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in an immediate transaction and return its result; durable when this returns.

        What `work` raises is raised here, and nothing of that work is kept. It must not commit, and is run
        again when one that shares its commit fails.

        Raises:
            StorageError: The disk or the lock refused; nothing was changed.
        """
        self._follow_fork()
        job = _Job(work)
        with self._mutex:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            self._queue.append(job)
            leads = not self._leading
            self._leading = True
        if not leads:
            job.turn.wait()
        if not job.done:
            self._lead()
        return job.outcome()

    def try_write(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do `write` if nobody else is writing, and return None otherwise: it waits for no lock and no flush.

        Only for a file of durability "flush". A `write` must follow now and then: it empties the log.

        Raises:
            StorageError: The disk refused; nothing was changed.
        """
        self._follow_fork()
        with self._mutex:
            if self._closed or self._leading:
                return None
            self._leading = True
        job = _Job(work)
        try:
            self._set_waiting(wait=False)
            self._commit([job])
        finally:
            self._hand_on()
        return None if _is_busy(job.error) else job.outcome()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on one unchanging view of the file; never waits for a writer.

        Raises:
            StorageError: The file cannot be read.
        """
        self._follow_fork()
        with self._translated():
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                return work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._give_back(connection)

    def shrink(self) -> None:
        """Give the pages of deleted rows back to the file system."""

        def work(connection: sqlite3.Connection) -> None:
            for _ in range(_pragma(connection, "freelist_count")):
                connection.execute("PRAGMA incremental_vacuum")  # sqlite3 steps it once: one page a call

        self.write(work)

    def close(self) -> None:
        """Finish what is being written and close; safe to call twice."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            while self._leading:
                self._idle.wait()
            for connection in self._readers:
                connection.close()
            self._readers.clear()
            self._writer.close()

    def __del__(self) -> None:
        if getattr(self, "_pid", None) == os.getpid() and not self._closed:
            for connection in (*self._readers, getattr(self, "_writer", None)):
                if connection is not None:
                    connection.close()  # else Python warns of what a forgotten close() left open

    def __enter__(self) -> SqliteFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._queue = []
        self._leading = False
        self._waits = True
        self._readers = []

    def _follow_fork(self) -> None:
        """Open anew in a forked child; the parent's connections must be neither used nor closed there."""
        if self._pid == os.getpid() or self._closed:
            return
        self._inherited = (self._writer, self._readers)
        self._start()
        with self._translated():
            self._writer = self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self.timeout, isolation_level=None, check_same_thread=False
        )
        try:
            _switch_to_wal(connection, self.path, self.timeout)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA journal_size_limit = 4194304")
            if self._prepare is not None:
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(
        self,
        connection: sqlite3.Connection,
        application_id: int,
        migrations: Sequence[Migration],
        newer: type[JianmuError],
    ) -> None:
        if _version(connection, application_id) == len(migrations):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = _version(connection, application_id)
            if version is None:
                self._add_kind(connection, application_id)
                version = 0
            if version > len(migrations):
                raise newer(
                    f"{self.path} has schema version {version}, and this jianmu reads up to "
                    f"{len(migrations)}: upgrade jianmu"
                )
            for step in migrations[version:]:
                step(connection)
            connection.execute(
                "UPDATE jianmu_kind SET version = ? WHERE id = ?", (len(migrations), application_id)
            )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _add_kind(self, connection: sqlite3.Connection, application_id: int) -> None:
        """Make room for one more kind in a file that is new or ours already."""
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            connection.execute(f"PRAGMA application_id = {application_id}")
            connection.execute("CREATE TABLE jianmu_kind (id INTEGER PRIMARY KEY, version INTEGER NOT NULL)")
        elif not _has_kinds(connection):
            raise StorageError(f"{self.path} is a SQLite file of another kind; choose another path")
        connection.execute("INSERT INTO jianmu_kind VALUES (?, 0)", (application_id,))

    def _borrow(self) -> sqlite3.Connection:
        with self._mutex:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            if self._readers:
                return self._readers.pop()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._mutex:
            if self._closed or len(self._readers) >= 4:
                connection.close()
            else:
                self._readers.append(connection)

    def _lead(self) -> None:
        """Commit what waits now, then hand the lead to the first that came meanwhile."""
        with self._mutex:
            batch, self._queue = self._queue[:_MAX_BATCH], self._queue[_MAX_BATCH:]
        try:
            self._set_waiting(wait=True)
            self._commit(batch)
        finally:
            for job in batch:
                job.done = True
            self._hand_on()
            for job in batch:
                job.turn.set()

    def _hand_on(self) -> None:
        """Let the first that came meanwhile lead, or nobody."""
        with self._mutex:
            heir = self._queue[0] if self._queue else None
            if heir is None:
                self._leading = False
                self._idle.notify_all()
        if heir is not None:
            heir.turn.set()

    def _set_waiting(self, *, wait: bool) -> None:
        """Say whether the writer waits for locks, and for the flushes that emptying the log takes."""
        if wait is not self._waits:
            milliseconds, pages = (int(self.timeout * 1000), _LOG_PAGES) if wait else (0, 0)
            with self._translated():
                self._writer.execute(f"PRAGMA busy_timeout = {milliseconds}")
                self._writer.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._waits = wait

    def _commit(self, batch: Sequence[_Job[Any]]) -> None:
        try:
            if self._commit_together(batch):
                return
        except StorageError as error:
            if len(batch) == 1 or _is_busy(error):
                for job in batch:
                    job.error = error
                return
        for job in batch:  # what one of them raised, or what is too big for the disk, is its own affair
            self._commit([job])

    def _commit_together(self, batch: Sequence[_Job[Any]]) -> bool:
        """Run all and commit; return False, with nothing kept, if one of several raised."""
        connection = self._writer
        with self._translated():
            try:
                connection.execute("BEGIN IMMEDIATE")
                kept = all(job.run(connection) for job in batch)
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

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(_explain(error, self.path, self.timeout)) from error
        except UnicodeDecodeError as error:  # sqlite3 cannot decode a message that quotes damaged bytes
            raise StorageError(f"{self.path} is damaged ({error.reason})") from error
        except OSError as error:
            raise StorageError(f"{self.path} cannot be opened: {error.strerror or error}") from error


class _Job(Generic[T]):
    """One thread's work, and how it ended."""

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self.work = work
        self.turn = threading.Event()
        self.done = False
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

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


def is_damage(error: BaseException | None) -> bool:
    """Return whether a StorageError means that the file itself is damaged."""
    cause = error.__cause__ if isinstance(error, StorageError) else error
    return _code(error) in _DAMAGE or isinstance(cause, UnicodeDecodeError)


def _is_busy(error: BaseException | None) -> bool:
    return _code(error) in _BUSY


def _code(error: BaseException | None) -> int:
    cause = error.__cause__ if isinstance(error, StorageError) else error
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF


def _create_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    if os.name == "posix":  # elsewhere a folder cannot be flushed
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _switch_to_wal(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """SQLite does not wait for its busy timeout while a journal mode changes, so wait here."""
    deadline = time.monotonic() + timeout
    while (mode := connection.execute("PRAGMA journal_mode").fetchone()[0]) != "wal":
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only while the file is empty
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StorageError(f"{path} cannot use a write-ahead log ({mode}); use a local, writable folder")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _version(connection: sqlite3.Connection, application_id: int) -> int | None:
    """Return the schema version of one kind of content, or None if the file does not hold it."""
    if not _has_kinds(connection):
        return None
    row = connection.execute("SELECT version FROM jianmu_kind WHERE id = ?", (application_id,)).fetchone()
    return None if row is None else int(row[0])


def _has_kinds(connection: sqlite3.Connection) -> bool:
    sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'jianmu_kind'"
    return bool(connection.execute(sql).fetchone()[0])


def _explain(error: sqlite3.Error, path: Path, timeout: float) -> str:
    code = _code(error)
    if code in _BUSY:
        return f"{path} was locked by another process for more than {timeout:g} s ({error})"
    if code == sqlite3.SQLITE_FULL:
        return f"no space left for {path}; free some and try again ({error})"
    if code in _DAMAGE:
        return f"{path} is damaged or no SQLite file ({error})"
    return f"{path}: {error}"
