"""PostgresCheckpointer passes the contract on a real server: by a socket, and sealed and pooled by TCP."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from jianmu.memory.checkpoint.cipher import AesGcmCipher
from jianmu.memory.checkpoint.postgres import PostgresCheckpointer
from jianmu.testing import CheckpointerContract, CheckpointerEndurance
from jianmu.testing.checkpointer_contract import Clock
from jianmu.testing.postgres import PostgresServer

KEY = bytes(range(32))


class PostgresSuite(CheckpointerContract):
    """Each test has a schema of its own, and closes what it opened."""

    exposes_records = True
    flips = 40
    many_saves = 30
    cipher: AesGcmCipher | None = None
    pooled = False
    tcp = False

    @pytest.fixture(autouse=True)
    def schema(self, postgres_server: PostgresServer, postgres_dsn: str) -> Iterator[None]:
        name = f"t{uuid.uuid4().hex}"
        database = postgres_dsn.rpartition("=")[2]
        self.dsn = postgres_server.dsn(database, tcp=self.tcp) + f" options='-c search_path={name}'"
        self.opened: list[PostgresCheckpointer] = []
        with psycopg.connect(postgres_dsn, autocommit=True) as admin:
            admin.execute(f"CREATE SCHEMA {name}")
            yield
            for store in self.opened:
                store.close()
            admin.execute(f"DROP SCHEMA {name} CASCADE")

    def open(self, **options: object) -> PostgresCheckpointer:
        store = PostgresCheckpointer(self.dsn, pooled=self.pooled, cipher=self.cipher, **options)  # type: ignore[arg-type]
        self.opened.append(store)
        return store

    def make(self, home: Path) -> PostgresCheckpointer:
        return self.open()

    def make_with_clock(self, home: Path, clock: Clock) -> PostgresCheckpointer:
        return self.open(clock=clock)

    def read_record(self, home: Path, thread_id: str, step: int) -> bytes:
        with psycopg.connect(self.dsn) as connection:
            sql = "SELECT body FROM jianmu_step WHERE thread = %s AND step = %s"
            found = connection.execute(sql, (thread_id.encode(), step)).fetchone()
        assert found is not None
        return bytes(found[0])

    def write_record(self, home: Path, thread_id: str, step: int, data: bytes) -> None:
        with psycopg.connect(self.dsn) as connection:
            sql = "UPDATE jianmu_step SET body = %s WHERE thread = %s AND step = %s"
            connection.execute(sql, (data, thread_id.encode(), step))


class TestPostgresCheckpointer(PostgresSuite):
    pass


class TestSealedPostgresCheckpointer(PostgresSuite):
    cipher = AesGcmCipher(KEY)
    tcp = True
    pooled = True


class TestPostgresCheckpointerAtLength(CheckpointerEndurance):
    big_state = 5_000_000
    many_steps = 1_000

    @pytest.fixture(autouse=True)
    def database(self, postgres_dsn: str) -> Iterator[None]:
        self.dsn = postgres_dsn
        self.opened: list[PostgresCheckpointer] = []
        yield
        with psycopg.connect(postgres_dsn, autocommit=True) as admin:
            for store in self.opened:
                store.close()
            admin.execute("DROP TABLE jianmu_thread, jianmu_step, jianmu_journal, jianmu_schema")

    def make(self, home: Path) -> PostgresCheckpointer:
        self.opened.append(PostgresCheckpointer(self.dsn))
        return self.opened[-1]


@pytest.mark.slow
class TestPostgresCheckpointerAtFullLength(TestPostgresCheckpointerAtLength):
    big_state = 50_000_000
    many_steps = 10_000
