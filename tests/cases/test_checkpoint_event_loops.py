"""T12 (57): one checkpointer in several event loops and threads."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .checkpointers import ALL, openers


@pytest.mark.parametrize("kind", ALL)
def test_one_object_serves_two_runs_of_asyncio(tmp_path: Path, kind: str) -> None:
    store = openers(tmp_path)[kind]()

    async def work(step: int) -> None:
        await asyncio.to_thread(store.save_checkpoint, "t", step, {"n": step})

    asyncio.run(work(1))
    asyncio.run(work(2))
    assert store.get_checkpoint("t")["state"]["n"] == 2


@pytest.mark.parametrize("kind", ALL)
def test_a_call_inside_a_coroutine_returns_soon(tmp_path: Path, kind: str) -> None:
    store = openers(tmp_path)[kind]()

    async def work() -> Any:
        store.save_checkpoint("t", 1, {"n": 1})
        return store.get_checkpoint("t")

    started = time.monotonic()
    assert asyncio.run(work())["state"]["n"] == 1
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("kind", ALL)
def test_two_threads_each_with_its_loop_lose_no_save(tmp_path: Path, kind: str) -> None:
    store = openers(tmp_path)[kind]()

    async def work(thread_id: str) -> None:
        for step in range(100):
            await asyncio.to_thread(store.save_checkpoint, thread_id, step, {"n": step})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda thread_id: asyncio.run(work(thread_id)), ("a", "b")))
    for thread_id in ("a", "b"):
        assert [info.step for info in store.list_checkpoints(thread_id)] == list(range(99, -1, -1))
