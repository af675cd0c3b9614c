"""What is asked of PostgreSQL alone: one round trip a save, servers that die, poolers, the server's clock."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import psycopg
import pytest

from jianmu.errors import CheckpointFormatError, StorageError, ThreadBusyError
from jianmu.memory import PostgresCheckpointer
from jianmu.memory.checkpoint.sql_schema import MIGRATIONS
from jianmu.testing.postgres import PostgresServer
from tests.checkpoint_sql.test_parts import STEPS, fill
from tests.checkpoint_sql.wire import Wire


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"db_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        yield name
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def wire(postgres_server: PostgresServer) -> Iterator[Wire]:
    wire = Wire(postgres_server.port)
    yield wire
    wire.close()


def through(wire: Wire, database: str) -> str:
    return f"host=127.0.0.1 port={wire.port} user=postgres dbname={database}"


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("leased", [False, True])
def test_a_save_is_one_round_trip(wire: Wire, database: str, pooled: bool, leased: bool) -> None:
    with PostgresCheckpointer(through(wire, database), pooled=pooled) as store:
        if leased:
            store.acquire("t")
        for step in range(30):  # psycopg prepares what it has sent five times
            store.save_checkpoint("t", step, {"items": list(range(step)), "text": "x" * 1000})
        before = wire.round_trips
        for step in range(30, 50):
            store.save_checkpoint("t", step, {"items": list(range(step)), "text": "x" * 1000})
        assert wire.round_trips - before == 20
        before = wire.round_trips
        assert store.get_checkpoint("t")["step"] == 49  # type: ignore[index]
        assert wire.round_trips - before == 1


def test_bundles_and_parts_travel_with_their_step(wire: Wire, database: str) -> None:
    with PostgresCheckpointer(through(wire, database), pooled=True) as store:
        fill(store, 100)
        before = wire.round_trips
        fill(store, STEPS, first=101)
        assert wire.round_trips - before == STEPS - 100
        counts = store._read(
            lambda session: session.rows("SELECT count(*) FROM jianmu_part GROUP BY part < 0")
        )
    assert len(counts) == 2


def test_a_save_whose_answer_was_lost_is_not_made_twice(wire: Wire, database: str) -> None:
    with PostgresCheckpointer(through(wire, database)) as store:
        store.save_checkpoint("t", 1, {"n": 1})
        wire.lose_next_answer()
        store.save_checkpoint("t", 2, {"n": 2})
        store.save_checkpoint("t", 3, {"n": 3})
        assert [info.step for info in store.list_checkpoints("t")] == [3, 2, 1]
        assert store.get_checkpoint("t", step=2)["state"] == {"n": 2}  # type: ignore[index]


def test_nothing_is_prepared_behind_a_pooler(postgres_server: PostgresServer, database: str) -> None:
    with PostgresCheckpointer(postgres_server.dsn(database), pooled=True, max_connections=1) as store:
        for step in range(20):
            store.save_checkpoint("t", step, {"n": step})
        prepared = store._read(lambda session: session.rows("SELECT count(*) FROM pg_prepared_statements"))
    assert prepared == [(0,)]


def test_leases_go_by_the_servers_clock(postgres_server: PostgresServer, database: str) -> None:
    late = PostgresCheckpointer(postgres_server.dsn(database), clock=lambda: 0.0)
    early = PostgresCheckpointer(postgres_server.dsn(database), clock=lambda: 4e9)
    with late, early, late.acquire("t", ttl=30), pytest.raises(ThreadBusyError, match=r"for (29|30)\.\d s"):
        early.acquire("t")


def test_newer_tables_are_refused(postgres_server: PostgresServer, database: str) -> None:
    PostgresCheckpointer(postgres_server.dsn(database)).close()
    with psycopg.connect(postgres_server.dsn(database)) as admin:
        admin.execute("UPDATE jianmu_schema SET version = version + 1")
    with pytest.raises(CheckpointFormatError, match=f"version {len(MIGRATIONS) + 1}.*upgrade"):
        PostgresCheckpointer(postgres_server.dsn(database))


def test_several_open_an_empty_database_at_once(postgres_server: PostgresServer, database: str) -> None:
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            with PostgresCheckpointer(postgres_server.dsn(database)) as store:
                store.save_checkpoint(f"t{number}", 1, {})
        except Exception as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_server_that_is_not_there_is_named_and_no_password_is_told() -> None:
    with pytest.raises(StorageError, match="is the server up") as caught:
        PostgresCheckpointer("host=127.0.0.1 port=1 user=u password=tangerine dbname=d", timeout=0.3)
    assert "tangerine" not in str(caught.value)


def test_closing_while_the_server_is_away_says_so_and_frees_the_connections() -> None:
    server = PostgresServer()
    server.start()
    try:
        store = PostgresCheckpointer(server.dsn(), timeout=0.5)
        store.acquire("t")
        server.kill()
        with pytest.raises(StorageError, match="is the server up"):
            store.close()
        store.close()
        with pytest.raises(StorageError, match="closed"):
            store.get_checkpoint("t")
    finally:
        server.remove()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_server_killed_and_started_again_in_mid_run_loses_no_step(tcp: bool) -> None:
    server = PostgresServer()
    server.start()
    try:
        store = PostgresCheckpointer(server.dsn(tcp=tcp), timeout=60)
        reached = {10: threading.Event(), 30: threading.Event()}
        saved: list[int] = []
        failures: list[Exception] = []

        def run() -> None:
            try:
                with store.acquire("t", ttl=300):
                    for step in range(60):
                        store.save_checkpoint("t", step, {"items": list(range(step))})
                        saved.append(step)
                        if step in reached:
                            reached[step].set()
            except Exception as error:  # noqa: BLE001 - told to the test
                failures.append(error)
                for each in reached.values():
                    each.set()

        worker = threading.Thread(target=run)
        worker.start()
        for event in reached.values():
            event.wait()
            server.kill()
            server.start()
        worker.join()
        assert failures == []
        assert saved == list(range(60))
        assert [info.step for info in reversed(store.list_checkpoints("t"))] == saved
        for step in saved:
            assert store.get_checkpoint("t", step=step)["state"] == {"items": list(range(step))}  # type: ignore[index]
        store.close()
    finally:
        server.remove()
