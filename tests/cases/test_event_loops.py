"""One object in several event loops and threads."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, StateManager, node
from jianmu.errors import RunError
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    n: int = 0


@node
async def count_up(ctx: LeafContext) -> dict[str, Any]:
    return {"n": ctx.state.n + await ctx.once("one", lambda: 1)}


@pytest.fixture(params=["file", "memory"])
def checkpointer(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FileCheckpointer(tmp_path) if request.param == "file" else InMemoryCheckpointer()


def test_one_runner_and_checkpointer_in_two_loops(checkpointer: Any) -> None:
    runner = ReactiveRunner(count_up(), StateManager(State))
    assert asyncio.run(runner.run(checkpointer=checkpointer)).state.n == 1
    assert asyncio.run(runner.run({"n": 5}, checkpointer=checkpointer)).state.n == 6


async def test_the_synchronous_call_inside_a_coroutine_is_an_error_at_once(checkpointer: Any) -> None:
    with pytest.raises(RunError, match="use `await"):
        ReactiveRunner(count_up(), StateManager(State)).run_sync(checkpointer=checkpointer)


def test_two_threads_with_a_loop_each_share_one_checkpointer(checkpointer: Any) -> None:
    def work(name: str) -> None:
        runner = ReactiveRunner(count_up(), StateManager(State))
        for n in range(25):
            runner.run_sync(checkpointer=checkpointer, thread_id=f"{name}{n}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = {f"{name}{n}" for name in "ab" for n in range(25)}
    assert set(checkpointer.list_threads()) == expected
    assert all(checkpointer.get_checkpoint(thread_id)["state"] for thread_id in expected)


async def test_a_runner_that_is_running_refuses_a_second_run() -> None:
    runner = ReactiveRunner(count_up(), StateManager(State))
    first = asyncio.create_task(runner.run())
    await asyncio.sleep(0)
    with pytest.raises(RunError, match="running already"):
        await runner.run()
    assert (await first).state.n == 1
