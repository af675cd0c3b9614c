"""Both SQL back ends behind one fixture."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jianmu.memory import PostgresCheckpointer, SqliteCheckpointer
from jianmu.memory.checkpoint.delta_checkpointer import DeltaCheckpointer

Opener = Callable[..., DeltaCheckpointer]


class Backend:
    """One empty store, opened as often as a test likes.

    Attributes:
        source: How another process opens it, as Python text.
    """

    def __init__(self, make: Opener, run_sql: Callable[..., list[tuple[Any, ...]]], source: str) -> None:
        self._make = make
        self._opened: list[DeltaCheckpointer] = []
        self.sql = run_sql
        self.source = source

    def open(self, **options: Any) -> DeltaCheckpointer:
        """Open the store once more."""
        self._opened.append(self._make(**options))
        return self._opened[-1]

    def close(self) -> None:
        """Close all that was opened."""
        for store in self._opened:
            store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Return an empty store of either kind."""
    if request.param == "sqlite":
        yield from sqlite_backend(tmp_path)
    else:
        yield from postgres_backend(request.getfixturevalue("postgres_dsn"))


def sqlite_backend(folder: Path) -> Iterator[Backend]:
    import sqlite3

    path = folder / "c.db"

    def run_sql(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    source = f"from jianmu.memory import SqliteCheckpointer as C; store = C({str(path)!r})"
    backend = Backend(
        lambda **kw: SqliteCheckpointer(path, **({"durability": "flush"} | kw)), run_sql, source
    )
    yield backend
    backend.close()


def postgres_backend(dsn: str) -> Iterator[Backend]:
    name = f"t{uuid.uuid4().hex}"
    inside = f"{dsn} options='-c search_path={name}'"

    def run_sql(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(inside, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}".encode())
        source = f"from jianmu.memory import PostgresCheckpointer as C; store = C({inside!r})"
        backend = Backend(lambda **kw: PostgresCheckpointer(inside, **kw), run_sql, source)
        yield backend
        backend.close()
        admin.execute(f"DROP SCHEMA {name} CASCADE".encode())
