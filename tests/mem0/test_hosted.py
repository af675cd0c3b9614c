"""The adapter over mem0's hosted client, against a server in its wire shapes."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from jianmu.errors import LongTermMemoryError
from jianmu.memory.long_term.mem0 import Mem0LongTermMemory

from .server import Wire

API_KEY = "m0-hosted-secret-0123456789"


@pytest.fixture(params=["dict", "list"])
def memory(wire: Wire, request: pytest.FixtureRequest) -> Iterator[Mem0LongTermMemory]:
    wire.as_list = request.param == "list"
    with Mem0LongTermMemory({"host": wire.url}, api_key=API_KEY) as opened:
        yield opened


def test_record_and_retrieve_by_user(memory: Mem0LongTermMemory, wire: Wire) -> None:
    stored = memory.record("likes green tea", namespace=("agent", "thread"), key="pref", metadata={"n": 1})
    assert stored["status"] == "stored"
    memory.record("likes green tea too", namespace=("agent", "other"))
    hits = memory.retrieve("green tea", namespace=("agent", "thread"), limit=3)
    assert [hit["id"] for hit in hits] == [stored["id"]]
    assert hits[0]["metadata"] == {"n": 1, "key": "pref"}
    adds = [
        body
        for _, path, body in wire.requests
        if path.split("?")[0] in ("/v1/memories/", "/v3/memories/add/")
    ]
    assert adds[0]["user_id"] == "agent/thread"
    assert adds[0]["infer"] is True
    searches = [body for _, path, body in wire.requests if path.endswith("/search/")]
    assert searches[0]["filters"] == {"user_id": "agent/thread"}
    assert searches[0]["top_k"] == 3


def test_infer_false_is_passed_as_given(wire: Wire) -> None:
    with Mem0LongTermMemory({"host": wire.url}, api_key=API_KEY, infer=False) as memory:
        memory.record("verbatim")
    assert [body["infer"] for _, path, body in wire.requests if "messages" in body] == [False]


def test_a_queued_answer_has_no_id_and_says_so(memory: Mem0LongTermMemory, wire: Wire) -> None:
    wire.pending = True
    assert memory.record("later", key="k") == {"id": None, "ids": [], "key": "k", "status": "queued"}


def test_rows_over_several_pages_are_all_deleted_and_the_neighbour_stays(
    memory: Mem0LongTermMemory, wire: Wire
) -> None:
    for number in range(230):
        wire.hosted[str(number)] = {
            "id": str(number),
            "memory": f"row {number}",
            "user_id": "a",
            "metadata": None,
        }
    wire.hosted["n"] = {"id": "n", "memory": "neighbour", "user_id": "b", "metadata": None}
    assert memory.delete_all(("a",)) == 230
    assert list(wire.hosted) == ["n"]
    unscoped = [
        path for method, path, _ in wire.requests if method == "DELETE" and path.startswith("/v1/memories/?")
    ]
    assert unscoped == []


def test_get_history_and_delete_ask_who_owns_the_memory(memory: Mem0LongTermMemory) -> None:
    memory_id = memory.record("mine", namespace=("me",))["id"]
    assert memory_id is not None
    assert memory.get(memory_id, namespace=("you",)) is None
    assert memory.delete(memory_id, namespace=("you",)) is False
    assert [row["event"] for row in memory.history(memory_id, namespace=("me",))] == ["ADD"]
    assert memory.delete(memory_id, namespace=("me",)) is True
    assert memory.get(memory_id, namespace=("me",)) is None


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500])
def test_every_refusal_is_one_error_of_ours_without_the_key(
    wire: Wire, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "jianmu")
    with Mem0LongTermMemory({"host": wire.url}, api_key=API_KEY) as memory:
        memory.record("warm up")
        wire.fail_with = status
        with pytest.raises(LongTermMemoryError) as refused:
            memory.record("refused")
        with pytest.raises(LongTermMemoryError):
            memory.retrieve("anything")
    assert API_KEY not in str(refused.value) + repr(memory) + caplog.text


def test_an_unreachable_host_is_reported_when_used_not_before() -> None:
    memory = Mem0LongTermMemory({"host": "http://127.0.0.1:9"}, api_key=API_KEY)
    with pytest.raises(LongTermMemoryError, match="reachable"):
        memory.record("fact")
