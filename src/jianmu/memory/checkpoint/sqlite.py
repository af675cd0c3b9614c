"""Checkpoints in one SQLite file: the embedded default for real work."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from jianmu.errors import CheckpointFormatError, StorageError
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.chain import Row
from jianmu.memory.checkpoint.delta_cache import Place
from jianmu.memory.checkpoint.delta_checkpointer import DeltaCheckpointer
from jianmu.memory.checkpoint.sql_lease import Session
from jianmu.memory.checkpoint.sql_schema import MIGRATIONS
from jianmu.memory.checkpoint.sql_threads import FREE
from jianmu.storage.sqlite import Durability, SqliteFile
from jianmu.storage.sqlite_errors import is_damage

__all__ = ["SqliteCheckpointer"]

T = TypeVar("T")

_APPLICATION_ID = 0x6A6D636B  # "jmck"
_TYPES = {"bytes": "BLOB", "int": "INTEGER", "real": "REAL", "text": "TEXT", "clustered": "WITHOUT ROWID"}

Item = tuple[object, ...]
"""Of a save: thread, incarnation, newest step and fence that must be found, then the columns of its row."""


class SqliteCheckpointer(DeltaCheckpointer):
    """Keeps the steps of any number of threads in one file; a save costs what changed.

    Safe to share between threads, event loops and processes of one machine; threads that save at the same
    moment share one flush of the disk. Not for network folders.

    Args:
        path: The file; it and its folder are made if missing (0600 and 0700).
        durability: "fsync": a save returns when the disk has it. "flush": when the operating system has it,
            which survives a killed process but not a power cut.
        cipher: Seals every step and journal record; thread ids, steps and times stay readable.
        clock: Seconds since the epoch, for `CheckpointInfo.time` and leases.
        timeout: Seconds to wait for another process's lock.
        cache_bytes: How much stored form to remember as the base of the next deltas.

    Raises:
        ConfigError: A path that is no file, or another `durability`.
        CheckpointFormatError: The file was made by a newer jianmu.
        StorageError: The file cannot be opened, or is of another kind.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ".outputs/jianmu/checkpoints.db",
        *,
        durability: Durability = "fsync",
        cipher: Cipher | None = None,
        clock: Callable[[], float] = time.time,
        timeout: float = 30.0,
        cache_bytes: int = 64 * 2**20,
    ) -> None:
        super().__init__(cipher=cipher, clock=clock, cache_bytes=cache_bytes)
        self._is_prompt = durability == "flush"
        self._file = SqliteFile(
            path,
            application_id=_APPLICATION_ID,
            migrations=[*map(_migration, MIGRATIONS[:2]), _uncluster],
            durability=durability,
            timeout=timeout,
            prepare=lambda connection: connection.create_function("now", 0, clock),
            newer=CheckpointFormatError,
        )

    def close(self) -> None:
        """Give back every lease and close the file; safe to call twice."""
        try:
            self._release_all()
        finally:
            self._file.close()

    def _read(self, work: Callable[[Session], T]) -> T:
        return self._file.read(lambda connection: work(_SqliteSession(connection)))

    def _write(self, work: Callable[[Session], T]) -> T:
        return self._file.write(lambda connection: work(_SqliteSession(connection)))

    def _advance(
        self, key: bytes, place: Place, rows: Sequence[Row], condition: str, values: Sequence[object]
    ) -> bool:
        row, *parts = rows
        item = _item(key, place, row, values)

        def work(connection: sqlite3.Connection) -> bool:
            return _advance_all(connection, [item]) and _add_parts(connection, key, parts)

        return self._file.write(work, bulk=None if parts else _advance_all, item=item)

    def _advance_promptly(
        self, key: bytes, place: Place, row: Row, condition: str, values: Sequence[object]
    ) -> bool:
        return bool(self._file.try_write(_advance_all, _item(key, place, row, values)))

    def _reclaim(self) -> None:
        self._file.shrink()

    def _is_damage(self, error: StorageError) -> bool:
        return is_damage(error)


def _item(key: bytes, place: Place, row: Row, fence: Sequence[object]) -> Item:
    return (key, place.incarnation, place.step, fence[0] if fence else None, *row[:6])


def _advance_all(connection: sqlite3.Connection, items: Sequence[Item]) -> bool:
    """Put in a row for each writer whose thread is where it thinks and whose right holds; whether all are in.

    A trigger moves the thread on. One statement, which needs no transaction: other threads run Python while
    it works and flushes.
    """
    values = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(items))
    done = connection.execute(
        "INSERT INTO jianmu_step (thread, step, before, base, saved, sum, body) "
        "SELECT thread, column5, column6, column7, column8, column9, column10 "
        f"FROM (VALUES {values}) JOIN jianmu_thread ON thread = column1 "
        "AND incarnation = column2 AND step = column3 "
        f"AND CASE WHEN column4 IS NULL THEN {FREE} ELSE fence = column4 END",
        [value for item in items for value in item],
    )
    return done.rowcount == len(items)


def _add_parts(connection: sqlite3.Connection, key: bytes, parts: Sequence[Row]) -> bool:
    connection.executemany(
        "INSERT INTO jianmu_part (thread, step, part, before, sum, body) VALUES (?, ?, ?, ?, ?, ?)",
        [(key, part.step, part.part, part.before, part.sum, part.body) for part in parts],
    )
    return True


class _SqliteSession:
    """One transaction of SQLite; its row locks are that of the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        return self._connection.execute(sql.replace(" FOR UPDATE", ""), values).fetchall()

    def each(self, sql: str, *values: object) -> Iterator[tuple[object, ...]]:
        return self._connection.execute(sql, values)

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(sql.replace(" FOR UPDATE", ""), values).rowcount


def _migration(statements: Sequence[str]) -> Callable[[sqlite3.Connection], None]:
    def migrate(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement.format(**_TYPES))

    return migrate


def _uncluster(connection: sqlite3.Connection) -> None:
    """Let rows lie in the order in which they came, found by an index on the key.

    In a tree of rows ordered by thread every save parts a page somewhere, and a row of a kilobyte takes a
    page of its own: five pages a save instead of one and a half.
    """
    for name in ("jianmu_step", "jianmu_part", "jianmu_journal"):
        ((sql,),) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
        connection.execute(f"ALTER TABLE {name} RENAME TO clustered")
        connection.execute(sql.replace("WITHOUT ROWID", ""))
        connection.execute(f"INSERT INTO {name} SELECT * FROM clustered ORDER BY 1, 2, 3")
        connection.execute("DROP TABLE clustered")
    connection.execute(
        "CREATE TRIGGER jianmu_move AFTER INSERT ON jianmu_step "
        "BEGIN UPDATE jianmu_thread SET step = new.step WHERE thread = new.thread; END"
    )
