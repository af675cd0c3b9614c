"""The engine's tables in PostgreSQL with pgvector.

The word index is packed postings as in SQLite. A vector stands twice: quantized, for exact cosines, and as a
`halfvec` under an HNSW index. The index covers all namespaces, so the search over it is iterative: it goes on
until enough rows of the namespace are found. Where a namespace is small the planner reads it whole instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jianmu.errors import LongTermMemoryError, StorageError
from jianmu.memory.long_term.engine.segments import PostingRow
from jianmu.memory.long_term.engine.spaces import SELECT_SPACE, Space, space_of
from jianmu.memory.long_term.engine.tables import FIRST_FORMAT, Tables
from jianmu.storage.postgres import PostgresConnection, PostgresPool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PostgresDatabase"]

T = TypeVar("T")

_KIND = "memory"
_LARGEST_ID = 2**31 - 1
_EXACT_UP_TO = 20_000
"""Passages up to which a namespace is searched exactly, whatever the planner thinks."""

_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS jianmu_schema (kind TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)"
)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS memory_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE IF NOT EXISTS memory_space (
        path TEXT COLLATE "C" PRIMARY KEY, id BIGINT NOT NULL UNIQUE, items BIGINT NOT NULL,
        slots BIGINT NOT NULL, documents BIGINT NOT NULL, words BIGINT NOT NULL, epoch BIGINT NOT NULL,
        segments BYTEA NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_item (
        space BIGINT NOT NULL, id BIGINT NOT NULL, uid TEXT NOT NULL, slot BIGINT NOT NULL,
        passages BIGINT NOT NULL, length BIGINT NOT NULL, before BIGINT, after BIGINT, session TEXT,
        speaker TEXT, time DOUBLE PRECISION NOT NULL, day BIGINT NOT NULL, dated BOOLEAN NOT NULL,
        expires DOUBLE PRECISION, content TEXT NOT NULL, metadata TEXT NOT NULL, digest BYTEA NOT NULL,
        created DOUBLE PRECISION NOT NULL, updated DOUBLE PRECISION NOT NULL, count BIGINT NOT NULL,
        PRIMARY KEY (space, id)
    )
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS memory_item_uid ON memory_item (space, uid)",
    "CREATE UNIQUE INDEX IF NOT EXISTS memory_item_digest ON memory_item (space, digest)",
    "CREATE INDEX IF NOT EXISTS memory_item_session ON memory_item (space, session, id)",
    "CREATE INDEX IF NOT EXISTS memory_item_expires ON memory_item (space, expires)",
    """
    CREATE TABLE IF NOT EXISTS memory_key (
        space BIGINT NOT NULL, key TEXT COLLATE "C" NOT NULL, item BIGINT NOT NULL, PRIMARY KEY (space, key)
    )
    """,
    "CREATE INDEX IF NOT EXISTS memory_key_item ON memory_key (space, item)",
    """
    CREATE TABLE IF NOT EXISTS memory_version (
        space BIGINT NOT NULL, uid TEXT NOT NULL, number BIGINT NOT NULL, content TEXT NOT NULL,
        metadata TEXT NOT NULL, time DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (space, uid, number)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_posting (
        space BIGINT NOT NULL, segment BIGINT NOT NULL, term TEXT COLLATE "C" NOT NULL, first BIGINT NOT NULL,
        entries BYTEA NOT NULL, PRIMARY KEY (space, segment, term, first)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_passage (
        space BIGINT NOT NULL, slot BIGINT NOT NULL, item BIGINT NOT NULL, vector BYTEA, near halfvec,
        PRIMARY KEY (space, slot)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_staged (
        space BIGINT NOT NULL, digest BYTEA NOT NULL, vectors BYTEA NOT NULL, PRIMARY KEY (space, digest)
    )
    """,
)
_WORDS = ("CREATE TABLE IF NOT EXISTS memory_word (word BIGINT NOT NULL PRIMARY KEY, vector BYTEA NOT NULL)",)
_VERSIONS_EXPIRE = ("ALTER TABLE memory_version ADD COLUMN IF NOT EXISTS expires DOUBLE PRECISION",)
_TOKENS = (
    """
    CREATE TABLE IF NOT EXISTS memory_token (
        space BIGINT NOT NULL, digest BYTEA NOT NULL, model TEXT NOT NULL, tokens BYTEA NOT NULL,
        PRIMARY KEY (space, digest, model)
    )
    """,
)
_MIGRATIONS: tuple[tuple[str, ...], ...] = ((), _TABLES, _WORDS, _VERSIONS_EXPIRE, _TOKENS)
_ALL = ("item", "key", "version", "posting", "passage", "staged", "space", "word", "token")


class PostgresDatabase:
    """The tables in one database (or schema, by the connection string's search_path).

    Args:
        dsn: A connection string or URL.
        pooled: Whether a pooler in transaction mode stands between.
        timeout: Seconds to wait for a connection, also while the server is away.
        draw: Gives a random number below its argument, for the ids of namespaces.

    Raises:
        StorageError: No connection, or a server without pgvector 0.8.
        LongTermMemoryError: The tables were made by a newer version.
    """

    def __init__(
        self,
        dsn: str,
        *,
        pooled: bool,
        timeout: float,
        draw: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._pool = PostgresPool(dsn, pooled=pooled, timeout=timeout)
        self._draw = draw
        try:
            self._pool.run(_migrate)
        except BaseException:
            self._pool.close()
            raise

    def read(self, work: Callable[[Tables], T]) -> T:
        """Run `work` on one consistent view."""

        def inside(connection: PostgresConnection) -> T:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                return work(PostgresTables(connection, self._draw))

        return self._pool.run(inside)

    def write(self, work: Callable[[Tables], T]) -> T:
        """Run `work`, all or nothing; durable when this returns. It runs again after a conflict."""

        def inside(connection: PostgresConnection) -> T:
            with connection.transaction():
                return work(PostgresTables(connection, self._draw))

        return self._pool.run(inside)

    def scrub(self) -> None:
        """Rewrite the tables without what was deleted; the server's log and its copies are beyond reach."""

        def inside(connection: PostgresConnection) -> None:
            for name in _ALL:
                connection.execute(f"VACUUM (FULL) memory_{name}".encode())

        self._pool.run(inside)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def _migrate(connection: PostgresConnection) -> None:
    """Bring the tables to the newest version; each statement alone, as not every PostgreSQL can undo them."""
    connection.execute(_VERSIONS)
    row = connection.execute("SELECT version FROM jianmu_schema WHERE kind = %s", (_KIND,)).fetchone()
    version = 0 if row is None else int(row[0])
    if version == len(_MIGRATIONS):
        return
    if version > len(_MIGRATIONS):
        raise LongTermMemoryError(
            f"the memory tables have version {version}, and this jianmu reads up to {len(_MIGRATIONS)}: "
            "upgrade jianmu"
        )
    if version == 1:
        raise LongTermMemoryError(FIRST_FORMAT)
    _require_pgvector(connection)
    for statements in _MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement.encode())
    connection.execute(
        "INSERT INTO jianmu_schema (kind, version) VALUES (%s, %s) "
        "ON CONFLICT (kind) DO UPDATE SET version = excluded.version",
        (_KIND, len(_MIGRATIONS)),
    )


def _require_pgvector(connection: PostgresConnection) -> None:
    offered = connection.execute(
        "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone()
    if offered is None:
        raise StorageError("this PostgreSQL has no pgvector; install the extension `vector`, 0.8 or newer")
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")


class PostgresTables(Tables):
    """Statements inside one transaction."""

    def __init__(self, connection: PostgresConnection, draw: Callable[[int], int]) -> None:
        self._connection = connection
        self._draw = draw

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of an answer."""
        return self._connection.execute(_translated(sql), values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        return self._connection.execute(_translated(sql), values).rowcount

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each tuple of values."""
        if values:
            with self._connection.cursor() as cursor:
                cursor.executemany(_translated(sql), values)

    def claim(self, path: str) -> Space:
        """The space of a path, made if need be; its row keeps other writers out."""
        while True:
            found = self.all(f"{SELECT_SPACE} WHERE path = ? FOR UPDATE", (path,))
            if found:
                return space_of(found[0])
            self.run(
                "INSERT INTO memory_space (path, id, items, slots, documents, words, epoch, segments)"
                " VALUES (?, ?, 0, 0, 0, 0, 0, '') ON CONFLICT (path) DO NOTHING",
                (path, self._draw(_LARGEST_ID)),
            )

    # -- words ----------------------------------------------------------------------------------------

    def posting_rows(
        self, space: Space, places: Sequence[tuple[int, str, int]]
    ) -> list[tuple[int, PostingRow]]:
        """For each (segment, term, slot) the last row of the segment whose key is not above it."""
        if not places:
            return []
        segments, terms, slots = (list(column) for column in zip(*places, strict=True))
        found = self.all(
            "SELECT place.number, row.term, row.first, row.entries"
            " FROM unnest(?::bigint[], ?::text[], ?::bigint[])"
            " WITH ORDINALITY AS place (segment, term, slot, number), LATERAL ("
            " SELECT term, first, entries FROM memory_posting WHERE space = ? AND segment = place.segment"
            ' AND (term, first) <= (place.term COLLATE "C", place.slot)'
            " ORDER BY term DESC, first DESC LIMIT 1) AS row",
            (segments, terms, slots, space.id),
        )
        return [(int(number) - 1, (term, first, entries)) for number, term, first, entries in found]

    # -- vectors --------------------------------------------------------------------------------------

    def reset_vectors(self, dimension: int | None) -> None:
        """Index vectors of this length from now on."""
        self.run("DROP INDEX IF EXISTS memory_passage_near")
        if dimension is not None:
            self.run(
                "CREATE INDEX memory_passage_near ON memory_passage USING hnsw "
                f"((near::halfvec({dimension:d})) halfvec_cosine_ops)"
            )

    def set_setting(self, name: str, value: str | None) -> None:
        """Store or drop a setting; with the first dimension comes the index for it."""
        known = self.setting(name)
        super().set_setting(name, value)
        if name == "dimension" and known is None and value is not None:
            self.reset_vectors(int(value))

    def add_passages(self, space: Space, passages: Sequence[tuple[int, int, bytes | None]]) -> None:
        """Add (slot, item id, quantized vector or None)."""
        self.run_many(
            "INSERT INTO memory_passage (space, slot, item, vector, near) VALUES (?, ?, ?, ?, ?::halfvec)",
            [(space.id, slot, item, blob, _near(blob)) for slot, item, blob in passages],
        )

    def passage_vectors(self, space: Space, first: int, count: int) -> list[bytes | None]:
        """The quantized vectors of consecutive slots."""
        sql = "SELECT vector FROM memory_passage WHERE space = ? AND slot >= ? AND slot < ? ORDER BY slot"
        return [row[0] for row in self.all(sql, (space.id, first, first + count))]

    def nearest(
        self, space: Space, query: npt.NDArray[np.float32], count: int
    ) -> tuple[list[int], list[float]]:
        """The nearest slots: exactly in a small namespace, by the index in a large one."""
        dimension, asked = len(query), _text(query)
        distance = f"near::halfvec({dimension:d}) <=> ?::halfvec({dimension:d})"
        order = "distance + 0, slot"  # an expression that the index does not serve
        if space.slots > _EXACT_UP_TO:
            order = "distance"
            self.run("SET LOCAL hnsw.iterative_scan = strict_order")
            self.run(f"SET LOCAL hnsw.ef_search = {min(max(count, 40), 1000):d}")
        found = self.all(
            f"SELECT slot, distance FROM (SELECT slot, {distance} AS distance FROM memory_passage"  # noqa: S608
            f" WHERE space = ? AND near IS NOT NULL) AS passages ORDER BY {order} LIMIT ?",
            (asked, space.id, count),
        )
        return [int(slot) for slot, _ in found], [1.0 - float(far) for _, far in found]

    def cosines(self, space: Space, query: npt.NDArray[np.float32], slots: Sequence[int]) -> list[float]:
        """Cosines of these slots, -1 where there is no vector."""
        from jianmu.retrieval.vectors import dequantize

        blobs = self._blobs(space, slots)
        return [float(dequantize(blobs[slot]) @ query) if slot in blobs else -1.0 for slot in slots]

    def vectors(self, space: Space, slots: Sequence[int]) -> npt.NDArray[np.float32]:
        """Vectors of these slots, zero where there is none."""
        import numpy as np

        from jianmu.retrieval.vectors import dequantize

        blobs = self._blobs(space, slots)
        none = np.zeros(int(self.setting("dimension") or 0), np.float32)
        return np.stack([dequantize(blobs[slot]) if slot in blobs else none for slot in slots])

    def forget_slots(self, space: Space, slots: Sequence[int]) -> None:
        """Nothing is kept in memory."""

    def _blobs(self, space: Space, slots: Sequence[int]) -> dict[int, bytes]:
        sql = (
            "SELECT slot, vector FROM memory_passage WHERE space = ? AND slot = ANY(?) AND vector IS NOT NULL"
        )
        return dict(self.all(sql, (space.id, list(slots))))


def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _near(blob: bytes | None) -> str | None:
    if blob is None:
        return None
    from jianmu.retrieval.vectors import dequantize

    return _text(dequantize(blob))


def _text(vector: npt.NDArray[np.float32]) -> str:
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"
