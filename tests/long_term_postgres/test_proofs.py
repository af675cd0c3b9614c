"""Killed writers and a killed server: what was acknowledged is there, and both legs agree."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psycopg
import pytest

from jianmu.memory import PostgresLongTermMemory
from jianmu.testing.postgres import PostgresServer
from tests.long_term.embedders import hashed
from tests.long_term.killing import HERE, assert_promises_kept, key_of, kill_writers, text_of
from tests.long_term_postgres.test_contract import schema_of


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize(
    "kills", [3, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])]
)
def test_what_was_acknowledged_survives_a_killed_writer(
    postgres_dsn: str, tmp_path: Path, kills: int
) -> None:
    dsn = schema_of(postgres_dsn, tmp_path)
    promised = kill_writers("postgres", dsn, kills)
    assert_promises_kept("postgres", dsn, promised)
    print(f"{kills} kills, {sum(promised.values())} acknowledged writes, 0 lost")


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])])
def test_a_server_killed_while_memories_are_written_loses_none(kills: int) -> None:
    server = PostgresServer()
    server.start()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
        written = threading.Semaphore(0)
        stop = threading.Event()
        promised = {"w": 0}
        failures: list[Exception] = []

        def write() -> None:
            try:
                with PostgresLongTermMemory(server.dsn(), hashed(), timeout=60) as memory:
                    while not stop.is_set():
                        number = promised["w"]
                        memory.record(
                            text_of("w", number), namespace=HERE, session="w", key=key_of("w", number)
                        )
                        promised["w"] += 1
                        written.release()
            except Exception as error:  # noqa: BLE001 - told to the test
                failures.append(error)
                written.release(1_000)

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(kills):
            for _ in range(15):
                written.acquire()
            server.kill()
            server.start()
        for _ in range(15):
            written.acquire()
        stop.set()
        writer.join()
        assert failures == []
        assert_promises_kept("postgres", server.dsn(), promised)
        print(f"{kills} kills of the server, {promised['w']} acknowledged writes, 0 lost")
    finally:
        server.remove()
