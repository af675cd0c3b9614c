"""The engine's tables in PostgreSQL with pgvector.

The word index is packed postings as in SQLite. A vector stands twice: quantized, for exact cosines, and as a
`halfvec` under an HNSW index. The index covers all namespaces, so the search over it is iterative: it goes on
until enough rows of the namespace are found. Where a namespace is small the planner reads it whole instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jianmu.memory.long_term.engine.postgres_schema import migrate
from jianmu.memory.long_term.engine.segments import PostingRow
from jianmu.memory.long_term.engine.spaces import SELECT_SPACE, Space, space_of
from jianmu.memory.long_term.engine.tables import Tables
from jianmu.storage.postgres import PostgresConnection, PostgresPool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PostgresDatabase"]

T = TypeVar("T")

_LARGEST_ID = 2**31 - 1
_EXACT_UP_TO = 20_000
"""Passages up to which a namespace is searched exactly, whatever the planner thinks."""

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
            self._pool.run(migrate)
        except BaseException:  # whatever it is, nothing stays open
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
