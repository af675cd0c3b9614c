"""A schema of its own for each case that is tried on PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from .checkpointers import DSN_FILE, close_all


@pytest.fixture(autouse=True)
def postgres_schema(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the connection string where `openers` looks for it."""
    spec = getattr(request.node, "callspec", None)
    if spec is None or "postgres" not in spec.params.values():
        yield
        return
    dsn, name = request.getfixturevalue("postgres_dsn"), f"case_{uuid.uuid4().hex}"
    home: Path = request.getfixturevalue("tmp_path")
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}".encode())
        (home / DSN_FILE).write_text(f"{dsn} options='-c search_path={name}'", "utf-8")
        yield
        close_all()
        admin.execute(f"DROP SCHEMA {name} CASCADE".encode())
