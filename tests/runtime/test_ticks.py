"""What causes a tick, and what does not."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from typing import Annotated, Any

import pytest
from py_trees import behaviours, decorators, timers
from py_trees.behaviour import Behaviour
from py_trees.common import ParallelPolicy, Status
from pydantic import BaseModel

from jianmu import Parallel, ReactiveRunner, Selector, Sequence, StateManager, node
from jianmu.errors import ConfigError, LivelockError, RunError, StalledError
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    ready: bool = False
    log: Annotated[list[str], operator.add] = []


def run_tree(tree: Behaviour, **kwargs: Any) -> ReactiveRunner:
    return ReactiveRunner(tree, StateManager(State), **kwargs)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_waiting_run_makes_no_ticks() -> None:
    go = asyncio.Event()

    @node
    async def leaf(ctx: LeafContext) -> None:
        await go.wait()

    runner = run_tree(leaf())
    ticks: list[int] = []
    runner.event_bus.subscribe(lambda event: ticks.append(event.payload["step"]), types={"tick"})
    task = asyncio.create_task(runner.run())
    await asyncio.sleep(0.05)
    runner.event_bus.drain()
    assert ticks == [1, 2]  # the start, and one more because a status changed
    go.set()
    assert (await task).ticks == 3


@pytest.mark.parametrize(
    "tree",
    [
        lambda: decorators.Repeat("r", behaviours.Success("s"), 5),
        lambda: decorators.Inverter("i", decorators.Retry("r", behaviours.Failure("f"), 5)),
        lambda: behaviours.TickCounter("t", 5, Status.SUCCESS),
        lambda: behaviours.StatusQueue("q", [Status.RUNNING] * 4, Status.SUCCESS),
        lambda: decorators.FailureIsRunning("f", behaviours.SuccessEveryN("n", 5)),
    ],
)
async def test_counters_go_on_by_themselves(tree: Any) -> None:
    result = await asyncio.wait_for(run_tree(tree()).run(), 5)
    assert result.status is Status.SUCCESS
    assert result.ticks in (5, 6)


@pytest.mark.parametrize("outside", ["loop", "thread"])
async def test_a_change_of_the_state_from_outside_causes_a_tick(outside: str) -> None:
    @node
    def ready(ctx: LeafContext) -> bool:
        return bool(ctx.state.ready)

    @node
    async def wait(ctx: LeafContext) -> None:
        await asyncio.Event().wait()

    runner = run_tree(Selector("s", False, [ready(), wait()]))
    task = asyncio.create_task(runner.run())
    await settle()
    if outside == "loop":
        runner.state_manager.update({"ready": True})
    else:
        thread = threading.Thread(target=runner.state_manager.update, args=({"ready": True},))
        thread.start()
        thread.join()
    assert (await asyncio.wait_for(task, 5)).status is Status.SUCCESS


async def test_timers_and_timeouts_wake_the_run_when_they_are_due() -> None:
    @node
    async def wait(ctx: LeafContext) -> None:
        await asyncio.Event().wait()

    start = time.monotonic()
    tree = Sequence("s", True, [timers.Timer("t", 0.05), decorators.Timeout("t", wait(), 0.05)])
    result = await asyncio.wait_for(run_tree(tree).run(), 5)
    assert result.status is Status.FAILURE
    assert 0.1 <= time.monotonic() - start < 2
    assert result.ticks <= 8


async def test_deadlines_are_kept_over_a_restart() -> None:
    def tree() -> Behaviour:
        @node
        async def wait(ctx: LeafContext) -> None:
            await asyncio.Event().wait()

        children = [timers.Timer("t", 3600.0), decorators.Timeout("t", wait(), 3600.0)]
        return Parallel("p", ParallelPolicy.SuccessOnAll(synchronise=True), children)

    checkpointer = InMemoryCheckpointer()
    first = run_tree(tree())
    await first.run(checkpointer=checkpointer, max_ticks=2)
    timer, timeout = first.root.children
    second = run_tree(tree())
    task = asyncio.create_task(second.run(checkpointer=checkpointer))
    await settle()
    timer_again, timeout_again = second.root.children
    assert timer_again.finish_time == timer.finish_time  # type: ignore[attr-defined]
    left = timeout_again.finish_time - time.monotonic()  # type: ignore[attr-defined]
    assert 3590 < left <= 3600
    assert timeout_again is not timeout
    second.cancel()
    await task


class Poll(Behaviour):
    """Looks at something outside that nobody tells of."""

    asked = 0

    def update(self) -> Status:
        type(self).asked += 1
        return Status.SUCCESS if type(self).asked % 5 == 0 else Status.RUNNING


async def test_a_polling_leaf_needs_a_tick_period() -> None:
    with pytest.raises(StalledError, match=r"0/0 \('poll'\).*tick_period"):
        await run_tree(Sequence("s", True, [Poll("poll")])).run()
    result = await run_tree(Poll("poll"), tick_period=0.01).run()
    assert result.status is Status.SUCCESS
    with pytest.raises(ConfigError, match="tick_period"):
        run_tree(Poll("poll"), tick_period=0)


async def test_a_tree_that_keeps_itself_busy_is_a_livelock() -> None:
    runner = run_tree(decorators.Repeat("r", behaviours.Success("s"), -1))
    with pytest.raises(LivelockError, match="1000"):
        await runner.run()
    assert all(each.status is not Status.RUNNING for each in runner.root.iterate())


async def test_other_tasks_run_between_self_caused_ticks() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await run_tree(behaviours.TickCounter("t", 100, Status.SUCCESS)).run()
    task.cancel()
    assert turns >= 100


async def test_an_exception_in_a_plain_behaviour_ends_the_run_and_is_not_saved() -> None:
    class Broken(Behaviour):
        def update(self) -> Status:
            raise ZeroDivisionError

    @node
    async def first(ctx: LeafContext) -> dict[str, Any]:
        return {"log": ["first"]}

    checkpointer = InMemoryCheckpointer()
    runner = run_tree(Sequence("s", True, [first(), Broken("b")]))
    with pytest.raises(ZeroDivisionError):
        await runner.run(checkpointer=checkpointer)
    envelope = checkpointer.get_checkpoint("default")
    assert envelope is not None
    assert envelope["step"] == 1
    assert envelope["tree"]["0/0"] == "RUNNING"


async def test_a_root_without_a_valid_status_is_an_error() -> None:
    class Nothing(Behaviour):
        def update(self) -> Status:
            return Status.INVALID

    with pytest.raises(RunError, match="no valid status"):
        await run_tree(Nothing("n")).run()


async def test_max_ticks_ends_a_run_that_can_go_on() -> None:
    checkpointer = InMemoryCheckpointer()
    total = 0
    for _ in range(10):
        result = await run_tree(behaviours.TickCounter("t", 5, Status.SUCCESS)).run(
            checkpointer=checkpointer, max_ticks=2, checkpoint_interval=50
        )
        total += result.ticks
        if result.outcome == "completed":
            break
        assert (result.outcome, result.ticks, result.status) == ("max_ticks", 2, Status.RUNNING)
    assert (total, result.step) == (6, 6)
    with pytest.raises(ConfigError, match="max_ticks"):
        await run_tree(behaviours.Success("s")).run(max_ticks=0)
