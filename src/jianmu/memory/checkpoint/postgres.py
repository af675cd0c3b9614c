"""Checkpoints in PostgreSQL: the shared store when several machines run agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from jianmu.errors import CheckpointFormatError
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.chain import Row
from jianmu.memory.checkpoint.delta_cache import Place
from jianmu.memory.checkpoint.delta_checkpointer import DeltaCheckpointer
from jianmu.memory.checkpoint.sql_lease import Session
from jianmu.memory.checkpoint.sql_schema import MIGRATIONS
from jianmu.storage.postgres import PostgresConnection, PostgresPool
from jianmu.storage.postgres_kinds import migrate

__all__ = ["PostgresCheckpointer"]

T = TypeVar("T")

_TYPES = {"bytes": "BYTEA", "int": "BIGINT", "real": "DOUBLE PRECISION", "text": "TEXT", "clustered": ""}
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_KIND = "checkpoint"


class PostgresCheckpointer(DeltaCheckpointer):
    """Keeps the steps of any number of threads in a PostgreSQL database; a save is one statement.

    The statement checks the lease, that nobody else has saved meanwhile, and writes what changed. Leases go
    by the server's clock. A lost connection is made anew, and what was under way is tried again without being
    written twice. Needs nothing that a pooler in transaction mode cannot give.

    Args:
        dsn: A connection string or URL of PostgreSQL; its user may create tables, or they exist.
        pooled: Whether a pooler in transaction mode stands between.
        cipher: Seals every step and journal record; thread ids, steps and times stay readable.
        clock: Seconds since the epoch, for `CheckpointInfo.time`; leases go by the server's.
        max_connections: The most connections to keep open.
        timeout: Seconds to wait for a connection, also while the server is away.
        cache_bytes: How much stored form to remember as the base of the next deltas.

    Raises:
        MissingExtraError: psycopg is not installed.
        CheckpointFormatError: The tables were made by a newer jianmu.
        StorageError: No connection.
    """

    def __init__(
        self,
        dsn: str,
        *,
        pooled: bool = False,
        cipher: Cipher | None = None,
        clock: Callable[[], float] = time.time,
        max_connections: int = 10,
        timeout: float = 30.0,
        cache_bytes: int = 64 * 2**20,
    ) -> None:
        super().__init__(cipher=cipher, clock=clock, cache_bytes=cache_bytes)
        self._pool = PostgresPool(dsn, pooled=pooled, max_size=max_connections, timeout=timeout)
        try:
            self._pool.run(_migrate)
        except BaseException:  # whatever it is, nothing stays open
            self._pool.close()
            raise

    def close(self) -> None:
        """Give back every lease and close the connections; safe to call twice."""
        try:
            self._release_all()
        finally:
            self._pool.close()

    def _read(self, work: Callable[[Session], T]) -> T:
        return self._pool.run(lambda connection: work(_PostgresSession(connection)))

    def _write(self, work: Callable[[Session], T]) -> T:
        def in_transaction(connection: PostgresConnection) -> T:
            with connection.transaction():
                return work(_PostgresSession(connection))

        return self._pool.run(in_transaction)

    def _write_one(self, sql: str, *values: object) -> int:
        return self._pool.run(lambda connection: _PostgresSession(connection).run(sql, *values))

    def _advance(
        self, key: bytes, place: Place, rows: Sequence[Row], condition: str, values: Sequence[object]
    ) -> bool:
        row, *parts = rows
        sql = (
            "WITH moved AS (UPDATE jianmu_thread SET step = ? "
            f"WHERE thread = ? AND incarnation = ? AND step = ? AND {condition} RETURNING thread)"
        )
        sent: list[object] = [row.step, key, place.incarnation, place.step, *values]
        if parts:
            sql += (
                ", parts AS (INSERT INTO jianmu_part (thread, step, part, before, sum, body) "
                "SELECT moved.thread, ?, new.part, ?, new.sum, new.body "
                "FROM moved, unnest(?::bigint[], ?::bigint[], ?::bytea[]) AS new (part, sum, body))"
            )
            sent += [
                row.step,
                parts[0].before,
                *map(list, zip(*((p.part, p.sum, p.body) for p in parts), strict=True)),
            ]
        sql += (
            " INSERT INTO jianmu_step (thread, step, before, base, saved, sum, body) "
            "SELECT thread, ?, ?, ?, ?, ?, ? FROM moved"
        )
        return self._write_one(sql, *sent, *row[:6]) == 1

    def _reclaim(self) -> None:
        """PostgreSQL vacuums by itself."""


class _PostgresSession:
    """Statements on one connection."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        cursor = self._connection.cursor(binary=True)
        return list(cursor.execute(_translated(sql), values).fetchall())

    def each(self, sql: str, *values: object) -> Iterator[tuple[object, ...]]:
        yield from self.rows(sql, *values)

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(_translated(sql), values).rowcount


def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").replace("now()", _NOW).encode()


def _migrate(connection: PostgresConnection) -> None:
    """Bring the tables to the newest version."""
    migrations = [
        [each.format(**_TYPES).replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ") for each in statements]
        for statements in MIGRATIONS
    ]
    migrate(connection, _KIND, "checkpoint", migrations, CheckpointFormatError)
