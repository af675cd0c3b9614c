"""What the contract does not see: the vector index, writers that meet, tables of a newer version."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import psycopg
import pytest

from jianmu.errors import EmbedderMismatchError, LongTermMemoryError, StorageError
from jianmu.memory import PostgresLongTermMemory
from jianmu.memory.long_term.engine import postgres_tables
from jianmu.testing.postgres import PostgresServer
from tests.long_term.embedders import hashed

from .test_contract import schema_of


@pytest.fixture
def dsn(postgres_dsn: str, tmp_path: Path) -> str:
    return schema_of(postgres_dsn, tmp_path)


def test_a_small_namespace_is_filled_from_an_index_over_all_of_them(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_tables, "_EXACT_UP_TO", 0)
    with PostgresLongTermMemory(dsn, hashed()) as memory:
        crowd = [{"inputs": f"crowd fact {n} about tea", "namespace": ("crowd",)} for n in range(1500)]
        memory.record_many(crowd)
        few = [{"inputs": f"few fact {n} about tea", "namespace": ("few",)} for n in range(40)]
        memory.record_many(few)
        hits = memory.retrieve("fact about tea", namespace=("few",), limit=40)
    assert len(hits) == 40
    assert all(hit["content"].startswith("few") for hit in hits)


def test_the_index_and_the_exact_search_agree_on_the_best(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"subject{n % 37} met object{n % 41} in place{n % 43}" for n in range(400)]
    with PostgresLongTermMemory(dsn, hashed()) as memory:
        memory.record_many([{"inputs": text} for text in texts])
        exact = [memory.retrieve(text, limit=1)[0]["content"] for text in texts[:30]]
        monkeypatch.setattr(postgres_tables, "_EXACT_UP_TO", 0)
        indexed = [memory.retrieve(text, limit=1)[0]["content"] for text in texts[:30]]
    assert exact == indexed == texts[:30]


def test_writers_of_one_and_of_many_namespaces_lose_nothing(dsn: str) -> None:
    errors: list[BaseException] = []

    def write(worker: int) -> None:
        try:
            with PostgresLongTermMemory(dsn, None) as memory:
                for number in range(20):
                    memory.record(f"shared {worker} {number}", namespace=("shared",))
                    memory.record(f"own {worker} {number}", namespace=("own", str(worker)))
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with PostgresLongTermMemory(dsn, None) as memory:
        assert len(memory.list(("shared",))) == 120
        assert len(memory.retrieve("shared", namespace=("shared",), limit=200)) == 120
        assert all(len(memory.list(("own", str(worker)))) == 20 for worker in range(6))


def test_another_embedder_is_refused_by_name(dsn: str) -> None:
    with PostgresLongTermMemory(dsn, hashed()) as memory:
        memory.record("likes tea")
    with (
        pytest.raises(EmbedderMismatchError, match="reindex"),
        PostgresLongTermMemory(dsn, lambda ts: [[1.0]] * len(ts)),
    ):
        pass


def test_tables_of_a_newer_version_are_refused(dsn: str) -> None:
    PostgresLongTermMemory(dsn, None).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE jianmu_schema SET version = 99 WHERE kind = 'memory'")
    with pytest.raises(LongTermMemoryError, match="upgrade jianmu"):
        PostgresLongTermMemory(dsn, None)


def test_a_server_that_is_away_is_one_clear_error() -> None:
    with pytest.raises(StorageError, match="is the server up"):
        PostgresLongTermMemory("postgresql://nobody@127.0.0.1:9/none", None, timeout=0.3)


def test_an_erased_text_is_in_no_table_file_of_the_server(postgres_server: PostgresServer, dsn: str) -> None:
    secret = "xylophonequartz"

    def files() -> list[str]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        found = []
        for path in (postgres_server.data / "base").rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # the server removes old files meanwhile
                if path.is_file() and secret.encode() in path.read_bytes():
                    found.append(path.name)
        return found

    with PostgresLongTermMemory(dsn, hashed()) as memory:
        memory.record_many([{"inputs": f"filler number {n}"} for n in range(50)])
        erased = memory.record(f"the word is {secret}", key="k", session="s")["id"] or ""
        memory.record("an answer beside it", session="s")
        assert files()
        memory.erase(erased)
        assert files() == []
        assert len(memory.list()) == 51
