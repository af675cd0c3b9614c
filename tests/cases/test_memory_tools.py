"""Reports on memory tools and stores: shared files, tenants, repeats, arguments, hidden failures."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jianmu.memory import MemoryService, SimpleStore, SqliteLongTermMemory, create_memory_tools
from jianmu.tools import Tool, current_idempotency_key

STORES: dict[str, Callable[[Path], Any]] = {
    "simple": lambda folder: SimpleStore(folder / "store.json"),
    "sqlite": lambda folder: SqliteLongTermMemory(folder / "memory.db", embedder=None),
}


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    return lambda: STORES[request.param](tmp_path)


def tools_of(store: Any, *namespace: str) -> tuple[Tool, Tool]:
    search, add = create_memory_tools(namespace, store)
    return search, add


def _put(folder: Path, kind: str, worker: int) -> None:
    store = STORES[kind](folder)
    for number in range(100):
        store.record(f"text {worker} {number}", key=f"{worker}-{number}", namespace=("n",))


@pytest.mark.parametrize("kind", sorted(STORES))
def test_two_processes_share_one_memory_file(kind: str, tmp_path: Path) -> None:
    """T4.17: never fewer keys with no error."""
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_put, args=(tmp_path, kind, worker)) for worker in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
    assert [worker.exitcode for worker in workers] == [0, 0]
    store = STORES[kind](tmp_path)
    assert len(store.list(("n",), limit=1000)) == 200
    assert store.get("0-0", namespace=("n",)) is not None


def test_wildcards_in_names_and_queries_are_literal(open_store: Callable[[], Any]) -> None:
    """T5.21."""
    store = open_store()
    users = ["john_doe", "john-doe", "100%", "100x", "A", "a"]
    for user in users:
        store.record(f"the item of {user}", key="k", namespace=("users", user))
    for user in users:
        found = store.retrieve("item", namespace=("users", user), limit=10)
        assert [hit["content"] for hit in found] == [f"the item of {user}"]
        search, _ = tools_of(store, "users")
        assert f"the item of {user}" in search.run(query="item", namespace=[user])
    store.record("battery 1000 full", key="wrong")
    store.record("battery 100% full", key="right")
    assert store.retrieve("100%")[0]["content"] == "battery 100% full"


def test_a_repeated_fact_is_one_memory(open_store: Callable[[], Any]) -> None:
    """T10.51: twice, once more after a resume, and another user's own."""
    _, add = tools_of(open_store(), "users", "ann")
    said = [add.run(content="likes tea"), add.run(content="likes tea")]
    token = current_idempotency_key.set("run/0/0/1/remember")
    try:
        said.append(add.run(content="likes tea"))
    finally:
        current_idempotency_key.reset(token)
    store = open_store()
    said.append(tools_of(store, "users", "ann")[1].run(content="likes tea"))
    assert len(set(said)) == 1
    assert len(store.list(("users", "ann"))) == 1
    tools_of(store, "users", "bob")[1].run(content="likes tea")
    assert len(store.list(("users", "bob"))) == 1
    assert len(store.list(("users", "ann"))) == 1
    for number in range(5):
        store.record("likes tea", key=f"again{number}", namespace=("users", "ann"))
    store.record("likes tea and cake", key="more", namespace=("users", "ann"))
    found = [hit["content"] for hit in store.retrieve("likes tea", limit=3, namespace=("users", "ann"))]
    assert len(found) == len(set(found)) == 2


def test_a_near_duplicate_is_a_memory_of_its_own(open_store: Callable[[], Any]) -> None:
    """T10.51: `likes tea!` is another text; only white space and Unicode form are ignored."""
    store = open_store()
    _, add = tools_of(store, "u")
    add.run(content="likes tea")
    add.run(content="likes tea!")
    assert len(store.list(("u",))) == 2


def test_null_is_not_given_and_a_missing_query_is_named(open_store: Callable[[], Any]) -> None:
    """T11.53."""
    store = open_store()
    for number in range(9):
        store.record(f"x {number}", key=f"k{number}", namespace=("n",))
    search, _ = tools_of(store, "n")
    assert search.call({"query": "x", "k": None}) == search.call({"query": "x"})
    for wrong in ({"query": None}, {}):
        result = search.call(wrong)
        assert result.is_error
        assert "query" in result.content
    unknown = search.call({"query": "x", "colour": "red"})
    assert unknown.is_error
    assert "colour" in unknown.content


class Failing(SimpleStore):
    """A store whose second write fails, and whose search can be made to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes = 0
        self.is_dead = False

    def record(self, inputs: Any, **kwargs: Any) -> Any:
        self.writes += 1
        if self.writes == 2:
            raise RuntimeError("the embedder is gone")
        return super().record(inputs, **kwargs)

    def retrieve(self, query: str, **kwargs: Any) -> Any:
        if self.is_dead:
            raise RuntimeError("the embedder is gone")
        return super().retrieve(query, **kwargs)


def test_a_failed_write_never_looks_like_a_stored_one(tmp_path: Path) -> None:
    """T12.55: every id that is returned can be fetched; the failed one is an error."""
    store = Failing(tmp_path / "s.json")
    _, add = tools_of(store, "n")
    results = [add.call({"content": f"fact {number}", "key": f"k{number}"}) for number in range(3)]
    assert [result.is_error for result in results] == [False, True, False]
    assert results[1].content == "Error storing memory: the embedder is gone"
    assert sorted(item["id"] or "" for item in store.list(("n",))) == ["k0", "k2"]


def test_a_failed_search_never_looks_like_an_empty_one(tmp_path: Path) -> None:
    """T12.55: the caller, the operator and the result's mark all say so."""
    store = Failing(tmp_path / "s.json")
    store.is_dead = True
    events: list[str] = []

    class Bus:
        def emit(self, type: str, payload: Any = None) -> None:
            events.append(type)

    service = MemoryService(store, ("n",), Bus())
    with pytest.raises(RuntimeError, match="embedder"):
        service.search("tea")
    result = service.as_tools()[0].call({"query": "tea"})
    assert (result.content, result.is_error) == ("No results.", True)
    assert events == ["memory.failed", "memory.failed"]


def test_one_store_and_its_tools_in_two_loops(open_store: Callable[[], Any]) -> None:
    """T12.57: asyncio.run twice, and the sync call inside a coroutine."""
    search, add = tools_of(open_store(), "n")

    async def use(number: int) -> str:
        await add.acall({"content": f"tea {number}", "key": f"k{number}"})
        assert not add.call({"content": "sync inside", "key": "sync"}).is_error
        return (await search.acall({"query": f"tea {number}"})).content

    for number in range(2):
        assert f"tea {number}" in asyncio.run(use(number))
