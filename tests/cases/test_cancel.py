"""Cancellation belongs to one run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from py_trees.common import Status
from pydantic import BaseModel

from jianmu import Ask, AsyncNode, ReactiveRunner, Sequence, StateManager, node
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    done: bool = False


@node
async def count(ctx: LeafContext, calls: list[str]) -> dict[str, Any]:
    calls.append("called")
    return {"done": True}


async def test_a_cancel_before_the_first_tick_is_not_lost() -> None:
    calls: list[str] = []
    runner = ReactiveRunner(count(calls), StateManager(State))
    task = asyncio.create_task(runner.run())
    assert runner.cancel()
    result = await task
    assert (result.outcome, result.ticks, calls) == ("cancelled", 0, [])


async def test_a_cancelled_task_that_never_began_calls_no_leaf_and_leaves_the_runner_free() -> None:
    calls: list[str] = []
    runner = ReactiveRunner(count(calls), StateManager(State))
    task = asyncio.create_task(runner.run())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls == []
    assert (await runner.run()).status is Status.SUCCESS


async def test_a_cancel_of_one_run_does_not_touch_the_next() -> None:
    checkpointer = InMemoryCheckpointer()
    late: list[asyncio.Future[Any]] = []

    @node
    async def slow_first_time(ctx: LeafContext) -> dict[str, Any]:
        if not late:
            late.append(asyncio.get_running_loop().create_future())
            await asyncio.shield(late[0])
        return {"done": True}

    runner = ReactiveRunner(slow_first_time(), StateManager(State))
    first = asyncio.create_task(runner.run(checkpointer=checkpointer, thread_id="t"))
    while not late:
        await asyncio.sleep(0)
    runner.cancel()
    assert (await first).outcome == "cancelled"
    second = asyncio.create_task(runner.run(checkpointer=checkpointer, thread_id="t"))
    late[0].set_result(None)
    result = await second
    assert (result.status, result.outcome, result.state.done) == (Status.SUCCESS, "completed", True)
    assert not runner.cancel()
    assert (await runner.run({"done": False}, checkpointer=checkpointer, thread_id="t")).state.done


async def test_a_cancel_while_a_question_is_open_ends_the_waiter_and_empties_the_list() -> None:
    ended: list[str] = []

    class Waiter(AsyncNode):
        async def run(self, ctx: LeafContext) -> None:
            try:
                await ctx.ask("ok?")
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

    runner = ReactiveRunner(Waiter(), StateManager(State))
    task = asyncio.create_task(runner.run())
    while not runner.pending:
        await asyncio.sleep(0)
    runner.cancel()
    result = await asyncio.wait_for(task, 1)
    assert result.outcome == "cancelled"
    assert result.pending == runner.pending == ()
    assert ended == ["cancelled"]


@pytest.mark.parametrize("by", ["runner", "task"])
async def test_a_cancelled_run_is_saved_and_can_go_on(by: str) -> None:
    checkpointer = InMemoryCheckpointer()
    calls: list[str] = []

    def tree() -> Sequence:
        return Sequence("root", True, [count(calls), Ask("ok?")])

    runner = ReactiveRunner(tree(), StateManager(State))
    task = asyncio.create_task(runner.run(checkpointer=checkpointer, thread_id="t"))
    while not runner.pending:
        await asyncio.sleep(0)
    [question] = runner.pending
    before = checkpointer.list_checkpoints("t", limit=1)[0].step
    if by == "runner":
        runner.cancel()
        assert (await task).outcome == "cancelled"
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert checkpointer.list_checkpoints("t", limit=1)[0].step > before
    assert all(each.status is not Status.RUNNING for each in runner.root.iterate())

    again = ReactiveRunner(tree(), StateManager(State))
    result = await again.run(checkpointer=checkpointer, thread_id="t", answers={question.id: True})
    assert result.status is Status.SUCCESS
    assert calls == ["called"]
