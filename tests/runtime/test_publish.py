"""Leaves that talk while both run."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import Parallel, ReactiveRunner, Sequence, StateManager, Status, node
from jianmu.errors import RunError, StateValidationError
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext, ParallelPolicy


class State(BaseModel):
    log: Annotated[list[str], operator.add] = []
    go: bool = False
    n: int = 0


async def test_a_publication_is_seen_while_its_leaf_runs_and_wakes_the_tree() -> None:
    @node
    async def talker(ctx: LeafContext) -> None:
        await ctx.publish("go", {"go": True, "log": ["go"]})
        await asyncio.Event().wait()

    @node
    def gone(ctx: LeafContext) -> Status:
        return Status.SUCCESS if ctx.state.go else Status.RUNNING

    tree = Parallel("p", ParallelPolicy.SuccessOnOne(), [talker(), gone()])
    result = await asyncio.wait_for(ReactiveRunner(tree, StateManager(State)).run(), 5)
    assert result.status is Status.SUCCESS
    assert result.state.log == ["go"]


async def test_a_publication_happens_once_although_its_leaf_starts_again(checkpointer: Any) -> None:
    published = asyncio.Event()

    @node
    async def talker(ctx: LeafContext) -> dict[str, Any]:
        await ctx.publish("a", {"log": ["a"]})
        await ctx.publish("a", {"log": ["never"]})
        await ctx.publish("b", {"log": ["b"]})
        published.set()
        if ctx.state.log.count("b") == 1 and not ctx.state.go:
            await asyncio.Event().wait()
        return {"log": ["end"]}

    runner = ReactiveRunner(talker(), StateManager(State))
    task = asyncio.create_task(runner.run(checkpointer=checkpointer))
    await published.wait()
    runner.cancel()
    assert (await task).state.log == ["a", "b"]
    again = ReactiveRunner(talker(), StateManager(State))
    task = asyncio.create_task(again.run(checkpointer=checkpointer))
    while again.root.status is not Status.RUNNING:
        await asyncio.sleep(0)
    again.state_manager.update({"go": True})
    result = await task
    assert result.state.log == ["a", "b", "end"]


async def test_updates_are_buffered_seen_by_their_leaf_and_checked_at_once() -> None:
    state = StateManager(State)

    @node
    async def leaf(ctx: LeafContext) -> None:
        ctx.update({"n": 1, "log": ["x"]})
        ctx.update({"log": ["y"]})
        assert (ctx.state.n, ctx.state.log) == (1, ["x", "y"])
        assert (state.get().n, state.get().log) == (0, [])
        with pytest.raises(StateValidationError, match="n"):
            ctx.update({"n": "many"})
        with pytest.raises(StateValidationError, match="nonsense"):
            await ctx.publish("p", {"nonsense": 1})

    result = await ReactiveRunner(leaf(), state).run()
    assert result.status is Status.SUCCESS, result.errors
    assert (result.state.n, result.state.log) == (1, ["x", "y"])


async def test_an_interrupted_leaf_leaves_no_update() -> None:
    @node
    async def loser(ctx: LeafContext) -> None:
        ctx.update({"log": ["lost"]})
        await asyncio.Event().wait()

    @node
    async def winner(ctx: LeafContext) -> dict[str, Any]:
        return {"log": ["won"]}

    tree = Parallel("p", ParallelPolicy.SuccessOnOne(), [loser(), winner()])
    assert (await ReactiveRunner(tree, StateManager(State)).run()).state.log == ["won"]


async def test_a_context_that_outlives_its_leaf_can_change_nothing() -> None:
    kept: list[LeafContext] = []

    @node
    async def leaf(ctx: LeafContext) -> None:
        kept.append(ctx)

    @node
    async def later(ctx: LeafContext) -> None:
        with pytest.raises(RunError, match="has ended"):
            kept[0].update({"n": 1})
        with pytest.raises(RunError, match="has ended"):
            await kept[0].once("k", lambda: 1)

    tree = Sequence("s", True, [leaf(), later()])
    result = await ReactiveRunner(tree, StateManager(State)).run(checkpointer=InMemoryCheckpointer())
    assert result.status is Status.SUCCESS, result.errors
