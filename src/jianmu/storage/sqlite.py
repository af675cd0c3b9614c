"""One SQLite file for many threads and processes: durable, private, with commits that are shared."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, TypeVar

from jianmu.errors import ConfigError, JianmuError, StorageError
from jianmu.storage.atomic import make_private_folder, sync_folder
from jianmu.storage.sqlite_commits import Bulk, SharedCommits, Work
from jianmu.storage.sqlite_errors import is_busy, translated
from jianmu.storage.sqlite_kinds import Migration, migrate

__all__ = ["Durability", "SqliteFile"]

T = TypeVar("T")

Durability = Literal["fsync", "flush"]
"""``fsync`` survives power loss; ``flush`` survives the death of the process."""

_READER_CACHE = 16 * 2**20  # bytes at most, each; taken only by whoever reads so much
_SYNCHRONOUS = {"fsync": "FULL", "flush": "NORMAL"}


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
        self._closed = False
        with self._translated():
            _create_private(self.path)
            self._open()
            try:
                migrate(self._writer, self.path, application_id, migrations, newer)
            except BaseException:  # whatever it is, nothing stays open
                self._writer.close()
                raise

    def write(self, work: Work[T], *, bulk: Bulk | None = None, item: Any = None) -> T:
        """Run `work` in an immediate transaction and return its result; durable when this returns.

        What `work` raises is raised here, and nothing of that work is kept. It must not commit, and is run
        again when one that shares its commit fails.

        Args:
            work: The statements.
            bulk: Does the same for many items in one statement; `work` must return whether its item is in.
            item: What `bulk` is to be given for this one.

        Raises:
            StorageError: The disk or the lock refused; nothing was changed.
        """
        self._follow_fork()
        return self._commits.write(work, bulk, item)

    def try_write(self, bulk: Bulk, item: Any) -> bool | None:
        """Let `bulk` do one item, or return None if somebody else is writing.

        It waits for no lock and no flush.
        Only for a file of durability "flush". A `write` must follow now and then: it empties the log.

        Raises:
            StorageError: The disk refused; nothing was changed.
        """
        self._follow_fork()
        return self._commits.try_write(bulk, item)

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
            for connection in self._readers:
                connection.close()
            self._readers.clear()
        self._commits.close()

    def __del__(self) -> None:
        if getattr(self, "_pid", None) == os.getpid() and not self._closed:
            for connection in (*self._readers, getattr(self, "_writer", None)):
                if connection is not None:
                    connection.close()  # else Python warns of what a forgotten close() left open

    def __enter__(self) -> SqliteFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._writer = self._connect()
        self._commits = SharedCommits(self._writer, name=str(self.path), timeout=self.timeout)

    def _follow_fork(self) -> None:
        """Open anew in a forked child; the parent's connections must be neither used nor closed there."""
        if self._pid == os.getpid() or self._closed:
            return
        self._inherited = (self._writer, self._readers, self._commits)
        with self._translated():
            self._open()

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
        except BaseException:  # whatever it is, nothing stays open
            connection.close()
            raise
        return connection

    def _borrow(self) -> sqlite3.Connection:
        with self._mutex:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            if self._readers:
                return self._readers.pop()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = -{_READER_CACHE // 1024}")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._mutex:
            if self._closed or len(self._readers) >= 4:
                connection.close()
            else:
                self._readers.append(connection)

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self.path, self.timeout)


def _create_private(path: Path) -> None:
    make_private_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    sync_folder(path.parent)


def _switch_to_wal(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """SQLite does not wait for its busy timeout while a journal mode changes, so wait here."""
    deadline = time.monotonic() + timeout
    while (mode := connection.execute("PRAGMA journal_mode").fetchone()[0]) != "wal":
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only while the file is empty
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StorageError(f"{path} cannot use a write-ahead log ({mode}); use a local, writable folder")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
