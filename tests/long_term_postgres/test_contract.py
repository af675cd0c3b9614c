"""PostgresLongTermMemory keeps the contract on a real server, with words alone and with an embedder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from jianmu.memory import PostgresLongTermMemory
from jianmu.testing import LongTermMemoryContract
from tests.long_term.embedders import hashed


def schema_of(dsn: str, folder: Path) -> str:
    """A connection string whose tables are this folder's own."""
    name = "m" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
    return psycopg.conninfo.make_conninfo(dsn, options=f"-c search_path={name},public")


class Suite(LongTermMemoryContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_dsn: str) -> None:
        self.dsn = postgres_dsn


class TestWordsAlone(Suite):
    def make(self, folder: Path, *, clock: Callable[[], float]) -> PostgresLongTermMemory:
        return PostgresLongTermMemory(schema_of(self.dsn, folder), embedder=None, clock=clock)


class TestWithAnEmbedder(Suite):
    def make(self, folder: Path, *, clock: Callable[[], float]) -> PostgresLongTermMemory:
        return PostgresLongTermMemory(schema_of(self.dsn, folder), embedder=hashed(), clock=clock)


class TestBehindAPooler(Suite):
    def make(self, folder: Path, *, clock: Callable[[], float]) -> PostgresLongTermMemory:
        return PostgresLongTermMemory(schema_of(self.dsn, folder), hashed(), pooled=True, clock=clock)
