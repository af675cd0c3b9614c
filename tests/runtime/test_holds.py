"""A thread is held by one run at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from jianmu import Ask, ReactiveRunner, StateManager, Status
from jianmu.errors import LeaseLostError, ThreadBusyError
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer


class State(BaseModel):
    n: int = 0


def runner() -> ReactiveRunner:
    return ReactiveRunner(Ask("ok?"), StateManager(State))


async def started(run: ReactiveRunner, **kwargs: Any) -> asyncio.Task[Any]:
    task = asyncio.create_task(run.run(**kwargs))
    while not run.pending:
        await asyncio.sleep(0)
    return task


async def test_a_second_run_of_a_thread_is_refused_at_once_and_later_allowed(checkpointer: Any) -> None:
    first = runner()
    task = await started(first, checkpointer=checkpointer, thread_id="t")
    with pytest.raises(ThreadBusyError, match="'t'"):
        await asyncio.wait_for(runner().run(checkpointer=checkpointer, thread_id="t"), 2)
    other = runner()
    other_task = await started(other, checkpointer=checkpointer, thread_id="u")
    for each in (first, other):
        each.answer(each.pending[0].id, True)
    assert (await task).status is (await other_task).status is Status.SUCCESS
    assert (await runner().run(checkpointer=checkpointer, thread_id="t")).ticks == 0


async def test_two_checkpointers_of_one_folder_see_each_other(tmp_path: Path) -> None:
    first = runner()
    task = await started(first, checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    with pytest.raises(ThreadBusyError):
        await runner().run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    first.cancel()
    await task


async def test_a_run_whose_thread_was_deleted_stops_and_does_not_bring_it_back() -> None:
    checkpointer = InMemoryCheckpointer()
    run = runner()
    task = await started(run, checkpointer=checkpointer, thread_id="t")
    await asyncio.sleep(0.01)
    checkpointer.delete_thread("t")
    run.answer(run.pending[0].id, True)
    with pytest.raises(LeaseLostError):
        await task
    assert checkpointer.get_checkpoint("t") is None
    assert checkpointer.list_threads() == []


async def test_the_heartbeat_ends_a_run_that_lost_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jianmu.runtime.hold._TTL", 0.03)
    checkpointer = InMemoryCheckpointer()
    task = await started(runner(), checkpointer=checkpointer, thread_id="t")
    await asyncio.sleep(0.05)
    checkpointer.delete_thread("t")
    with pytest.raises(LeaseLostError):
        await asyncio.wait_for(task, 5)
