"""The engine's tables in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from jianmu.errors import LongTermMemoryError, StorageError
from jianmu.memory.long_term.engine.segments import PostingRow
from jianmu.memory.long_term.engine.spaces import Space
from jianmu.memory.long_term.engine.tables import FIRST_FORMAT, Tables
from jianmu.memory.long_term.engine.vector_cache import VectorCache
from jianmu.retrieval.scripts import has_unspaced
from jianmu.storage.sqlite import SqliteFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jianmu.retrieval.vectors import VectorIndex

__all__ = ["SqliteDatabase"]

T = TypeVar("T")

_APPLICATION_ID = 0x4A6D4C74  # "JmLt"
_LOADED_AT_ONCE = 4_096

_SCHEMA = """
CREATE TABLE memory_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE memory_space (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, items INTEGER NOT NULL,
    slots INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, epoch INTEGER NOT NULL,
    segments BLOB NOT NULL
);
CREATE TABLE memory_item (
    id INTEGER PRIMARY KEY, uid TEXT NOT NULL, space INTEGER NOT NULL, slot INTEGER NOT NULL,
    passages INTEGER NOT NULL, length INTEGER NOT NULL, before INTEGER, after INTEGER, session TEXT,
    speaker TEXT, time REAL NOT NULL, day INTEGER NOT NULL, dated INTEGER NOT NULL, expires REAL,
    content TEXT NOT NULL, metadata TEXT NOT NULL, digest BLOB NOT NULL, created REAL NOT NULL,
    updated REAL NOT NULL, count INTEGER NOT NULL
);
CREATE UNIQUE INDEX memory_item_uid ON memory_item (space, uid);
CREATE UNIQUE INDEX memory_item_digest ON memory_item (space, digest);
CREATE INDEX memory_item_session ON memory_item (space, session, id) WHERE session IS NOT NULL;
CREATE INDEX memory_item_expires ON memory_item (space, expires) WHERE expires IS NOT NULL;
CREATE TABLE memory_key (
    space INTEGER NOT NULL, key TEXT NOT NULL, item INTEGER NOT NULL, PRIMARY KEY (space, key)
) WITHOUT ROWID;
CREATE INDEX memory_key_item ON memory_key (space, item);
CREATE TABLE memory_version (
    space INTEGER NOT NULL, uid TEXT NOT NULL, number INTEGER NOT NULL, content TEXT NOT NULL,
    metadata TEXT NOT NULL, time REAL NOT NULL, until REAL NOT NULL, PRIMARY KEY (space, uid, number)
);
CREATE TABLE memory_posting (
    space INTEGER NOT NULL, segment INTEGER NOT NULL, term TEXT NOT NULL, first INTEGER NOT NULL,
    entries BLOB NOT NULL, PRIMARY KEY (space, segment, term, first)
) WITHOUT ROWID;
CREATE TABLE memory_passage (
    space INTEGER NOT NULL, slot INTEGER NOT NULL, item INTEGER NOT NULL, vector BLOB,
    PRIMARY KEY (space, slot)
) WITHOUT ROWID;
CREATE TABLE memory_staged (
    space INTEGER NOT NULL, digest BLOB NOT NULL, vectors BLOB NOT NULL, PRIMARY KEY (space, digest)
);
"""

_WORDS = "CREATE TABLE memory_word (word INTEGER PRIMARY KEY, vector BLOB NOT NULL)"
_TOKENS = """
CREATE TABLE memory_token (
    space INTEGER NOT NULL, digest BLOB NOT NULL, model TEXT NOT NULL, tokens BLOB NOT NULL,
    PRIMARY KEY (space, digest, model)
)
"""


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)


def _refuse_first_format(connection: sqlite3.Connection) -> None:
    """Version 1, before the first release, had another word index."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(memory_posting)")}
    if "segment" not in columns:
        raise LongTermMemoryError(FIRST_FORMAT)


def _add_words(connection: sqlite3.Connection) -> None:
    connection.execute(_WORDS)


def _let_versions_expire(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE memory_version ADD COLUMN expires REAL")


def _add_tokens(connection: sqlite3.Connection) -> None:
    connection.execute(_TOKENS)


def _add_checksums_and_scripts(connection: sqlite3.Connection) -> None:
    for table in ("item", "version"):
        connection.execute(f"ALTER TABLE memory_{table} ADD COLUMN crc INTEGER")
    connection.execute("ALTER TABLE memory_item ADD COLUMN unspaced INTEGER NOT NULL DEFAULT 0")
    connection.create_function("has_unspaced", 1, has_unspaced, deterministic=True)
    connection.execute("UPDATE memory_item SET unspaced = 1 WHERE has_unspaced(content)")


def _delete_securely(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA secure_delete = ON")


_MIGRATIONS = (
    _make_tables,
    _refuse_first_format,
    _add_words,
    _let_versions_expire,
    _add_tokens,
    _add_checksums_and_scripts,
)


class SqliteDatabase:
    """The tables in one file.

    Args:
        path: The file; its folder is made.
        timeout: Seconds to wait for another process that writes.
        cache_bytes: How much memory the vectors of recently searched namespaces may take.

    Raises:
        StorageError: The file cannot be opened, is of another kind, or was written by a newer version.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float, cache_bytes: int) -> None:
        self._file = SqliteFile(
            path,
            application_id=_APPLICATION_ID,
            migrations=_MIGRATIONS,
            timeout=timeout,
            prepare=_delete_securely,
        )
        self._cache = VectorCache(cache_bytes)

    def read(self, work: Callable[[Tables], T]) -> T:
        """Run `work` on one consistent view."""
        return self._file.read(lambda connection: work(SqliteTables(connection, self._cache)))

    def write(self, work: Callable[[Tables], T]) -> T:
        """Run `work`, all or nothing; on disk when this returns."""
        return self._file.write(lambda connection: work(SqliteTables(connection, self._cache)))

    def scrub(self) -> None:
        """Rebuild the file without what was deleted, and empty the write-ahead log.

        Raises:
            StorageError: Somebody holds an old view of the file, whose bytes are therefore still there.
        """
        path = self._file.path
        try:
            with closing(
                sqlite3.connect(path, timeout=self._file.timeout, isolation_level=None)
            ) as connection:
                _delete_securely(connection)
                connection.execute("VACUUM")
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error as error:
            raise StorageError(
                f"{path}: deleted, but not erased from the file: {error}; call scrub()"
            ) from error
        if busy:
            raise StorageError(f"{path}: deleted, but somebody still reads old pages; call scrub()")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._cache.clear()


class SqliteTables(Tables):
    """Statements inside one transaction."""

    space_beside_ids = "+space"  # the plus keeps SQLite from walking the space's whole index

    def __init__(self, connection: sqlite3.Connection, cache: VectorCache) -> None:
        self._connection = connection
        self._cache = cache

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of an answer."""
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each tuple of values."""
        self._connection.executemany(sql, values)

    def claim(self, path: str) -> Space:
        """The space of a path, made if need be; BEGIN IMMEDIATE keeps other writers out."""
        found = self.spaces(path, deep=False)
        if found:
            return found[0]
        self.run(
            "INSERT INTO memory_space (path, items, slots, documents, words, epoch, segments)"
            " VALUES (?, 0, 0, 0, 0, 0, x'')",
            (path,),
        )
        return self.spaces(path, deep=False)[0]

    def posting_rows(
        self, space: Space, places: Sequence[tuple[int, str, int]]
    ) -> list[tuple[int, PostingRow]]:
        """For each (segment, term, slot) the last row of the segment whose key is not above it."""
        sql = (
            "SELECT term, first, entries FROM memory_posting WHERE space = ? AND segment = ?"
            " AND (term, first) <= (?, ?) ORDER BY term DESC, first DESC LIMIT 1"
        )
        execute, id = self._connection.execute, space.id
        found = ((at, execute(sql, (id, *place)).fetchone()) for at, place in enumerate(places))
        return [(at, row) for at, row in found if row is not None]

    def add_passages(self, space: Space, passages: Sequence[tuple[int, int, bytes | None]]) -> None:
        """Add (slot, item id, quantized vector or None)."""
        self.run_many(
            "INSERT INTO memory_passage (space, slot, item, vector) VALUES (?, ?, ?, ?)",
            [(space.id, *passage) for passage in passages],
        )

    def passage_vectors(self, space: Space, first: int, count: int) -> list[bytes | None]:
        """The quantized vectors of consecutive slots."""
        sql = "SELECT vector FROM memory_passage WHERE space = ? AND slot >= ? AND slot < ? ORDER BY slot"
        return [row[0] for row in self.all(sql, (space.id, first, first + count))]

    def nearest(
        self, space: Space, query: npt.NDArray[np.float32], count: int
    ) -> tuple[list[int], list[float]]:
        """Exact search in memory over what the file holds now."""
        with self._cache.lock:
            return self._index(space, len(query)).search(query, count)

    def cosines(self, space: Space, query: npt.NDArray[np.float32], slots: Sequence[int]) -> list[float]:
        """Cosines of these slots, -1 where there is no vector."""
        with self._cache.lock:
            return self._index(space, len(query)).scores(slots, query)

    def vectors(self, space: Space, slots: Sequence[int]) -> npt.NDArray[np.float32]:
        """Vectors of these slots, zero where there is none."""
        dimension = int(self.setting("dimension") or 0)
        with self._cache.lock:
            return self._index(space, dimension).vectors(slots)

    def forget_slots(self, space: Space, slots: Sequence[int]) -> None:
        """Never return these slots from memory again."""
        self._cache.forget(space, slots)

    def _index(self, space: Space, dimension: int) -> VectorIndex:
        index = self._cache.of(space, dimension)
        if index.last_slot + 1 < space.slots:
            cursor = self._connection.execute(
                "SELECT slot, vector FROM memory_passage"
                " WHERE space = ? AND slot > ? AND vector IS NOT NULL ORDER BY slot",
                (space.id, index.last_slot),
            )
            expected = max(index.rows, space.documents) if not index.rows else 0
            while rows := cursor.fetchmany(_LOADED_AT_ONCE):
                index.append([row[0] for row in rows], [row[1] for row in rows], expected)
            self._cache.trim()
        return index
