"""Finished children stay finished; interrupted ones are ended once."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from py_trees.behaviour import Behaviour
from py_trees.common import ParallelPolicy, Status
from py_trees.decorators import Timeout
from pydantic import BaseModel

from jianmu import Ask, Parallel, ReactiveRunner, Selector, Sequence, StateManager, SuspensionMode, node
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    log: Annotated[list[str], operator.add] = []
    alarm: bool = False


@node
async def log(ctx: LeafContext, what: str) -> dict[str, Any]:
    return {"log": [what]}


@node
async def refuse(ctx: LeafContext, what: str) -> bool:
    ctx.update({"log": [what]})
    return False


def on_all() -> ParallelPolicy.SuccessOnAll:
    return ParallelPolicy.SuccessOnAll(synchronise=True)


def parallel() -> Behaviour:
    return Parallel("p", on_all(), [log("a", name="same"), Ask("go?", name="same")])


def nested() -> Behaviour:
    third = Selector("s", True, [refuse("c", name="same"), parallel()])
    second = Sequence("s", True, [log("b", name="same"), third])
    return Selector("s", True, [refuse("a0", name="same"), second, log("never")])


@pytest.mark.parametrize(
    ("tree", "expected"), [(parallel, ["a"]), (nested, ["a0", "b", "c", "a"])], ids=["parallel", "nested"]
)
async def test_finished_children_stay_finished_over_a_restart(
    tree: Any, expected: list[str], tmp_path: Path
) -> None:
    suspended = await ReactiveRunner(tree(), StateManager(State)).run(
        checkpointer=FileCheckpointer(tmp_path), suspension_mode=SuspensionMode.YIELD
    )
    assert suspended.state.log == expected
    result = await ReactiveRunner(tree(), StateManager(State)).run(
        checkpointer=FileCheckpointer(tmp_path), answers={suspended.pending[0].id: True}
    )
    assert result.status is Status.SUCCESS
    assert result.state.log == expected


class Counting(Behaviour):
    """A plain behaviour that never ends by itself."""

    def __init__(self, ended: list[str]) -> None:
        super().__init__("counting")
        self.ended = ended

    def update(self) -> Status:
        return Status.RUNNING

    def terminate(self, new_status: Status) -> None:
        self.ended.append(self.name)


@node
async def working(ctx: LeafContext, ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("working")


@node
def alarm(ctx: LeafContext) -> bool:
    return bool(ctx.state.alarm)


def both(ended: list[str]) -> Parallel:
    return Parallel("p", on_all(), [Counting(ended), working(ended)])


def none_running(tree: Behaviour) -> bool:
    return all(each.status is not Status.RUNNING for each in tree.iterate())


async def started(runner: ReactiveRunner) -> None:
    while runner.root.status is not Status.RUNNING:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_cancelled_parallel_ends_each_child_once() -> None:
    ended: list[str] = []
    runner = ReactiveRunner(both(ended), StateManager(State))
    task = asyncio.create_task(runner.run())
    await started(runner)
    runner.cancel()
    await task
    assert sorted(ended) == ["counting", "working"]
    assert none_running(runner.root)


async def test_a_timed_out_parallel_ends_each_child_once() -> None:
    ended: list[str] = []
    runner = ReactiveRunner(Timeout("t", both(ended), duration=0.02), StateManager(State))
    result = await asyncio.wait_for(runner.run(), 5)
    assert result.status is Status.FAILURE
    assert sorted(ended) == ["counting", "working"]
    assert none_running(runner.root)


async def test_a_parallel_interrupted_by_a_higher_branch_ends_each_child_once() -> None:
    ended: list[str] = []
    state = StateManager(State)
    runner = ReactiveRunner(Selector("s", False, [alarm(), both(ended)]), state)
    task = asyncio.create_task(runner.run())
    await started(runner)
    state.update({"alarm": True})
    result = await asyncio.wait_for(task, 5)
    assert result.status is Status.SUCCESS
    assert sorted(ended) == ["counting", "working"]
    assert none_running(runner.root)
