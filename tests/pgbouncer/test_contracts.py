"""Both PostgreSQL back ends keep their contracts behind a real pooler in transaction mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jianmu import ReactiveRunner, StateManager, node
from jianmu.errors import LeaseLostError, StorageError, ThreadBusyError
from jianmu.memory import PostgresCheckpointer, PostgresLongTermMemory
from jianmu.testing import CheckpointerContract, LongTermMemoryContract
from jianmu.testing.checkpointer_contract import Clock
from jianmu.testing.postgres import PostgresServer
from tests.checkpoint_sql.test_parts import Chat
from tests.long_term.embedders import hashed
from tests.pgbouncer.conftest import PgBouncer

pytestmark = pytest.mark.slow


class TestPooledCheckpointer(CheckpointerContract):
    many_saves = 30

    @pytest.fixture(autouse=True)
    def _pooler(self, pgbouncer: PgBouncer, database: str) -> Iterator[None]:
        self.dsn = pgbouncer.dsn(database)
        self.opened: list[PostgresCheckpointer] = []
        yield
        for store in self.opened:
            store.close()

    def open(self, **options: Any) -> PostgresCheckpointer:
        self.opened.append(PostgresCheckpointer(self.dsn, pooled=True, **options))
        return self.opened[-1]

    def make(self, home: Path) -> PostgresCheckpointer:
        return self.open()

    def make_with_clock(self, home: Path, clock: Clock) -> PostgresCheckpointer:
        return self.open(clock=clock)


class TestPooledMemory(LongTermMemoryContract):
    @pytest.fixture(autouse=True)
    def _pooler(self, pgbouncer: PgBouncer, database: str, postgres_server: PostgresServer) -> None:
        with psycopg.connect(postgres_server.dsn(database), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
        self.bouncer, self.database, self.server = pgbouncer, database, postgres_server
        self.folders: dict[Path, str] = {}

    def make(self, folder: Path, *, clock: Callable[[], float]) -> PostgresLongTermMemory:
        return PostgresLongTermMemory(self._own(folder), hashed(), pooled=True, clock=clock)

    def _own(self, folder: Path) -> str:
        """A database per folder, as no search_path passes the pooler."""
        if folder not in self.folders:
            name = self.database if not self.folders else f"{self.database}_{len(self.folders)}"
            if self.folders:
                with psycopg.connect(self.server.dsn(), autocommit=True) as admin:
                    admin.execute(f"CREATE DATABASE {name}")
                with psycopg.connect(self.server.dsn(name), autocommit=True) as admin:
                    admin.execute("CREATE EXTENSION vector")
            self.folders[folder] = name
        return self.bouncer.dsn(self.folders[folder])


def test_leases_and_fences_hold_though_every_statement_may_use_another_connection(
    pgbouncer: PgBouncer, database: str
) -> None:
    first = PostgresCheckpointer(pgbouncer.dsn(database), pooled=True)
    second = PostgresCheckpointer(pgbouncer.dsn(database), pooled=True)
    with first, second:
        lease = first.acquire("t", ttl=60)
        first.save_checkpoint("t", 1, {"n": 1})
        with pytest.raises(ThreadBusyError):
            second.save_checkpoint("t", 2, {"n": 2})
        lease.release()
        with second.acquire("t"):
            second.save_checkpoint("t", 2, {"n": 2})
            first._leases[b"t"] = lease  # a worker that was paused and knows nothing of it
            with pytest.raises(LeaseLostError):
                first.save_checkpoint("t", 3, {"n": 3})
            first._leases.clear()


async def test_a_run_outlives_a_killed_pooler(pgbouncer: PgBouncer, database: str) -> None:
    said: list[int] = []

    @node
    async def say(ctx: Any) -> dict[str, Any]:
        turn = ctx.state.turn
        if turn == 5 and 5 not in said:
            pgbouncer.kill()
            pgbouncer.start()
        said.append(turn)
        return {"messages": [{"n": turn}], "turn": turn + 1}

    def runner() -> ReactiveRunner:
        from py_trees.decorators import Repeat

        return ReactiveRunner(Repeat(name="chat", child=say(), num_success=10), StateManager(Chat))

    with PostgresCheckpointer(pgbouncer.dsn(database), pooled=True) as store:
        try:
            result = await runner().run(checkpointer=store)
        except StorageError:
            result = await runner().run(checkpointer=store)
    assert [each["n"] for each in result.state.messages] == list(range(10))
