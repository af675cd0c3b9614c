"""The adapter over mem0's local client: what its users suffer from, and does not happen here."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import CapabilityError, ConfigError, LongTermMemoryError, MemoryInputError
from jianmu.memory.long_term.mem0 import Mem0LongTermMemory
from jianmu.messages import Message

from .conftest import KEY, LLM_KEY, local_config
from .server import DIMENSIONS, Wire

Open = Callable[..., Mem0LongTermMemory]


def test_a_verbatim_record_is_found_again_after_reopening(open_memory: Open) -> None:
    memory = open_memory()
    stored = memory.record("用户住在北京", namespace=("agent", "thread"), key="home")
    memory.close()
    hits = open_memory().retrieve("他住在哪里?", namespace=("agent", "thread"))
    assert [hit["content"] for hit in hits] == ["用户住在北京"]
    assert hits[0]["id"] == stored["id"]
    assert hits[0]["metadata"] == {"key": "home"}
    assert stored == {"id": stored["ids"][0], "ids": stored["ids"], "key": "home", "status": "stored"}


def test_messages_are_recorded_as_one_text(open_memory: Open) -> None:
    memory = open_memory()
    result = memory.record(
        [Message(role="user", content="I like tea"), Message(role="assistant", content="Noted")]
    )
    assert len(result["ids"]) == 1
    content = memory.retrieve("tea")[0]["content"]
    assert "I like tea" in content
    assert "Noted" in content


def test_a_key_is_updated_in_place_and_its_old_metadata_is_gone(open_memory: Open) -> None:
    memory = open_memory()
    first = memory.record("lives in Beijing", key="home", metadata={"n": 1, "tags": ["a"]})
    second = memory.record("lives in Shanghai", key="home", metadata={"m": {"deep": None}})
    third = memory.record("lives in Shanghai", key="home", metadata={"m": {"deep": None}})
    assert [r["status"] for r in (first, second, third)] == ["stored", "updated", "duplicate"]
    assert first["id"] == second["id"] == third["id"]
    (only,) = memory.list()
    assert only["content"] == "lives in Shanghai"
    assert only["metadata"] == {"key": "home", "m": {"deep": None}}


def test_the_same_fact_twice_is_one_memory_but_each_user_has_its_own(open_memory: Open) -> None:
    memory = open_memory()
    first, again = memory.record("likes tea", namespace=("a",)), memory.record("likes tea", namespace=("a",))
    other = memory.record("likes tea", namespace=("b",))
    assert again == {"id": first["id"], "ids": first["ids"], "key": None, "status": "duplicate"}
    assert other["status"] == "stored"
    assert len(memory.list(namespace=("a",))) == len(memory.list(("b",))) == 1


def test_a_star_as_user_reads_nobody_else(open_memory: Open) -> None:
    memory = open_memory()
    memory.record("secret of a", namespace=("a",))
    memory.record("public of star", namespace=("*",))
    assert [hit["content"] for hit in memory.retrieve("secret of a", namespace=("*",))] == ["public of star"]
    assert [hit["content"] for hit in memory.list(namespace=("*",))] == ["public of star"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("a", "b/c"), ("a/b", "c")),
        (("a b",), ("a%20b",)),
        ((" pad ",), ("pad",)),
        (("/",), ()),
        (("acme",), ("acme-corp",)),
        (("john_doe",), ("john-doe",)),
        (("100%",), ("100x",)),
        (("A",), ("a",)),
        (("\u00e9",), ("e\u0301",)),
        (("\ud800",), ("?",)),
    ],
)
def test_no_two_namespaces_meet(open_memory: Open, one: tuple[str, ...], two: tuple[str, ...]) -> None:
    memory = open_memory()
    memory.record("fact of one", namespace=one)
    assert memory.retrieve("fact of one", namespace=two) == []
    memory.record("fact of two", namespace=two)
    assert [hit["content"] for hit in memory.retrieve("fact of one", namespace=one)] == ["fact of one"]
    assert memory.delete_all(one) == 1
    assert [hit["content"] for hit in memory.list(namespace=two)] == ["fact of two"]


def test_limit_holds_and_low_scores_are_not_hidden(open_memory: Open) -> None:
    memory = open_memory()
    for number in range(30):
        memory.record(f"tea number {number}", namespace=("u",))
    assert len(memory.retrieve("tea", namespace=("u",), limit=1)) == 1
    assert len(memory.retrieve("tea", namespace=("u",), limit=25)) == 25
    assert len(memory.retrieve("nothing in common", namespace=("u",), limit=5)) == 5
    assert len(memory.list(namespace=("u",))) == 30


def test_an_empty_query_finds_nothing_and_an_empty_text_is_refused(open_memory: Open) -> None:
    memory = open_memory()
    memory.record("something")
    assert memory.retrieve("  ") == []
    with pytest.raises(ValueError, match="empty"):
        memory.record(" \n")


@pytest.mark.parametrize("name", ["user_id", "agent_id", "hash", "data", "role", "created_at", "id"])
def test_metadata_that_would_move_the_memory_is_refused(open_memory: Open, name: str) -> None:
    memory = open_memory()
    with pytest.raises(MemoryInputError, match=name):
        memory.record("fact", metadata={name: "someone else"})
    assert memory.list() == []


def test_delete_asks_who_owns_the_memory(open_memory: Open) -> None:
    memory = open_memory()
    mine = memory.record("mine", namespace=("me",))["id"]
    assert mine is not None
    assert memory.get(mine, namespace=("you",)) is None
    assert memory.history(mine, namespace=("you",)) == []
    assert memory.delete(mine, namespace=("you",)) is False
    assert memory.delete(mine, namespace=("me",)) is True
    assert memory.delete(mine, namespace=("me",)) is False
    assert memory.delete("no-such-id", namespace=("me",)) is False


def test_delete_all_takes_more_than_a_hundred_rows_and_spares_the_neighbour(open_memory: Open) -> None:
    memory = open_memory()
    for number in range(130):
        memory.record(f"row {number}", namespace=("a",))
    memory.record("neighbour", namespace=("b",))
    assert memory.delete_all(("a",)) == 130
    assert memory.list(namespace=("a",)) == []
    assert [row["content"] for row in memory.list(namespace=("b",))] == ["neighbour"]


def test_delete_all_leaves_no_history_text_in_the_file(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.record("the launch code is tangerine", namespace=("a",), key="code")
    memory.record("the launch code is mandarin", namespace=("a",), key="code")
    memory.record("neighbour likes plums", namespace=("b",))
    memory.delete_all(("a",))
    memory.close()
    data = (tmp_path / "history.db").read_bytes()
    assert b"tangerine" not in data
    assert b"mandarin" not in data
    assert b"plums" in data


def test_history_tells_what_a_memory_said_before(open_memory: Open) -> None:
    memory = open_memory()
    memory_id = memory.record("lives in Beijing", key="home")["id"]
    memory.record("lives in Shanghai", key="home")
    assert memory_id is not None
    rows = memory.history(memory_id)
    assert [row["event"] for row in rows] == ["ADD", "UPDATE"]
    assert rows[-1]["old_memory"] == "lives in Beijing"
    assert rows[-1]["new_memory"] == "lives in Shanghai"


def test_no_write_is_lost_under_threads(open_memory: Open) -> None:
    memory = open_memory()
    memory.record("warm up", namespace=("w",))

    def write(worker: int) -> None:
        for number in range(8):
            memory.record(f"worker {worker} wrote {number}", namespace=("t",))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.close()
    assert len(open_memory().list(namespace=("t",))) == 64


def test_close_frees_the_folder_for_the_next_object(open_memory: Open) -> None:
    first = open_memory()
    first.record("kept")
    first.close()
    first.close()
    second = open_memory()
    assert [row["content"] for row in second.list()] == ["kept"]


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # qdrant drops its lock file open
def test_a_folder_that_is_open_elsewhere_is_one_clear_error(open_memory: Open, store: str) -> None:
    if store != "qdrant":
        assert open_memory().retrieve("chroma shares its folder") == []
        return
    first, second = open_memory(), open_memory()
    first.record("kept")
    with pytest.raises(LongTermMemoryError, match="open elsewhere"):
        second.record("refused")


def test_a_wrong_dimension_names_both_numbers(wire: Wire, tmp_path: Path, store: str) -> None:
    if store != "qdrant":
        assert "embedding_model_dims" not in local_config(wire, tmp_path, store)["vector_store"]["config"]
        return
    config = local_config(wire, tmp_path, store)
    config["vector_store"]["config"]["embedding_model_dims"] = 7
    with Mem0LongTermMemory(config, infer=False) as memory, pytest.raises(LongTermMemoryError) as caught:
        memory.record("fact")
    assert str(DIMENSIONS) in str(caught.value)
    assert "embedding_model_dims=7" in str(caught.value)


def test_a_misspelt_config_name_is_an_error_not_silence(open_memory: Open) -> None:
    memory = open_memory(embeder={"provider": "openai"})
    with pytest.raises(ConfigError, match="embeder"):
        memory.record("fact")


def test_an_argument_mem0_has_no_place_for_is_named(open_memory: Open) -> None:
    with pytest.raises(CapabilityError, match="ttl"):
        open_memory().record("fact", ttl=60)
    with pytest.raises(CapabilityError, match=r"search\.time"):
        open_memory().retrieve("fact", as_of="2026-01-01")


def test_a_dead_embedder_is_an_error_and_nothing_is_stored(open_memory: Open, wire: Wire) -> None:
    memory = open_memory()
    memory.record("before")
    wire.fail_with = 400
    with pytest.raises(LongTermMemoryError, match="record"):
        memory.record("lost")
    with pytest.raises(LongTermMemoryError, match="retrieve"):
        memory.retrieve("before")
    wire.fail_with = None
    assert [row["content"] for row in memory.list()] == ["before"]


def test_no_key_is_seen_in_repr_errors_logs_or_files(
    open_memory: Open, wire: Wire, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    memory = open_memory()
    memory.record("fact")
    wire.fail_with = 401
    with pytest.raises(LongTermMemoryError) as caught:
        memory.record("refused")
    wire.fail_with = None
    memory.close()
    seen = repr(memory) + str(caught.value) + repr(caught.value.__cause__)
    own_logs = "".join(r.getMessage() for r in caplog.records if r.name.startswith("jianmu"))
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for key in (KEY, LLM_KEY):
        assert key not in seen
        assert key not in own_logs
        assert key.encode() not in files


def test_an_error_that_quotes_the_key_is_cleaned(open_memory: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_memory()
    memory.record("fact")

    def leak(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"Incorrect API key provided: {KEY}")

    monkeypatch.setattr(memory.client, "search", leak)
    memory.close()
    memory._opened = None
    memory.record("fact two")
    monkeypatch.setattr(memory._opened, "search", leak)
    with pytest.raises(LongTermMemoryError) as caught:
        memory.retrieve("fact")
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_history_database_is_the_one_named_in_the_config(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.record("fact")
    with sqlite3.connect(tmp_path / "history.db") as database:
        assert database.execute("SELECT count(*) FROM history").fetchone() == (1,)
    database.close()
