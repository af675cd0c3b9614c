"""Mistakes in a leaf's code are told, never swallowed."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from jianmu import ReactiveRunner, Sequence, StateManager, Status, node
from jianmu.errors import RunError, StateError
from jianmu.memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    n: int = 0
    tags: list[str] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


async def run(leaf: Any, schema: type[BaseModel] = State, **kwargs: Any) -> Any:
    return await ReactiveRunner(leaf, StateManager(schema)).run(**kwargs)


WAITING: dict[str, Callable[[LeafContext], Any]] = {
    "once": lambda ctx: ctx.once("key", lambda: 1),
    "ask": lambda ctx: ctx.ask("really?"),
    "publish": lambda ctx: ctx.publish("key", {"n": 1}),
    "build_context": lambda ctx: ctx.build_context(),
}


@pytest.mark.parametrize("method", WAITING)
async def test_a_plain_def_that_would_have_to_wait_is_refused_by_name(method: str) -> None:
    @node
    def book(ctx: LeafContext) -> None:
        WAITING[method](ctx)

    result = await run(book())
    assert result.status is Status.FAILURE
    error = result.errors["0"]
    assert isinstance(error, RunError)
    for word in ("'book' is a plain def", "async def", f"await ctx.{method}("):
        assert word in str(error)


async def test_a_plain_def_that_returns_a_coroutine_is_refused_by_name() -> None:
    async def work() -> None:
        """Do nothing."""

    @node
    def book(ctx: LeafContext) -> Any:
        return work()

    result = await run(book())
    assert result.status is Status.FAILURE
    assert "'book' is a plain def and returned a coroutine" in str(result.errors["0"])


async def test_a_plain_def_may_still_look_and_update() -> None:
    @node
    def count(ctx: LeafContext) -> bool:
        ctx.update({"n": ctx.state.n + 1})
        return True

    assert (await run(count())).state.n == 1


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_failing_leaf_is_logged_with_message_and_traceback(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def awaited(ctx: LeafContext) -> None:
        raise ValueError("no room left")

    def at_once(ctx: LeafContext) -> None:
        raise ValueError("no room left")

    leaf = node(awaited if is_async else at_once)(name="reserve")
    await run(Sequence("s", True, [leaf]), thread_id="trip-1")
    [record] = [record for record in caplog.records if record.name.startswith("jianmu.runtime")]
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "leaf 0/0 (reserve) of thread 'trip-1' failed: ValueError: no room left"
    assert record.exc_info is not None
    assert record.exc_info[2] is not None


def test_the_traceback_of_a_leaf_in_run_sync_begins_with_the_leafs_own_error() -> None:
    @node
    async def explode(ctx: LeafContext) -> None:
        raise ValueError("no room left")

    result = ReactiveRunner(explode(), StateManager(State)).run_sync()
    assert result.errors["0"].__context__ is None


async def test_an_assignment_to_the_state_is_refused_with_the_right_call() -> None:
    @node
    async def assign(ctx: LeafContext) -> None:
        ctx.state.n = 3

    result = await run(assign())
    assert (result.status, result.state.n) == (Status.FAILURE, 0)
    error = result.errors["0"]
    assert isinstance(error, StateError)
    assert "State.n was assigned" in str(error)
    assert "ctx.update({'n': ...})" in str(error)


async def test_a_new_name_in_an_open_state_is_refused_too() -> None:
    @node
    async def assign(ctx: LeafContext) -> None:
        ctx.state.anything = 3

    result = await run(assign(), Open)
    assert "ctx.update({'anything': ...})" in str(result.errors["0"])


async def test_a_copy_of_the_state_is_the_leafs_own() -> None:
    @node
    async def change(ctx: LeafContext) -> dict[str, Any]:
        mine = ctx.state.model_copy()
        mine.n = 3
        return {"n": mine.n}

    assert (await run(change())).state.n == 3


def give(value: str) -> str:
    return value


async def test_one_key_of_once_is_one_function() -> None:
    calls: list[str] = []

    @node
    async def twice(ctx: LeafContext) -> None:
        await ctx.once("k", lambda: calls.append("f"))
        await ctx.once("k", lambda: calls.append("g"))

    result = await run(twice(), checkpointer=InMemoryCheckpointer())
    assert calls == ["f"]
    assert "leaf 'twice': once('k') already has the answer of" in str(result.errors["0"])


async def test_one_key_of_once_is_one_set_of_arguments() -> None:
    @node
    async def loop(ctx: LeafContext) -> dict[str, Any]:
        return {"tags": [await ctx.once("fetch", give, page) for page in ("a", "b")]}

    result = await run(loop())
    assert "give to other arguments" in str(result.errors["0"])
    assert "its own key" in str(result.errors["0"])

    @node
    async def keyed(ctx: LeafContext) -> dict[str, Any]:
        return {"tags": [await ctx.once(f"fetch-{page}", give, page) for page in ("a", "b")]}

    assert (await run(keyed())).state.tags == ["a", "b"]


async def test_the_same_effect_may_be_asked_for_again() -> None:
    calls: list[int] = []

    class Shop:
        def buy(self, what: object) -> None:
            calls.append(1)

    shop = Shop()

    @node
    async def again(ctx: LeafContext) -> None:
        for _ in range(2):
            await ctx.once("lambda", lambda: calls.append(1))
            await ctx.once("method", shop.buy, object())
            await ctx.once("partial", functools.partial(shop.buy, "x"))
            await ctx.once("builtin", calls.append, 1)

    result = await run(again())
    assert (result.errors, len(calls)) == ({}, 4)


async def test_another_function_may_take_over_where_the_first_one_failed() -> None:
    @node
    async def either(ctx: LeafContext) -> dict[str, Any]:
        try:
            n = await ctx.once("k", int, "not a number")
        except ValueError:
            n = await ctx.once("k", len, "fallback")
        return {"n": n}

    result = await run(either())
    assert (result.errors, result.state.n) == ({}, 8)


async def test_a_changed_program_still_gets_the_answer_from_before_the_kill() -> None:
    checkpointer = InMemoryCheckpointer()

    def tree(effect: Callable[[], str]) -> Any:
        @node(name="leaf")
        async def leaf(ctx: LeafContext) -> None:
            ctx.update({"tags": [await ctx.once("k", effect)]})
            if effect is old:
                await ctx.ask("go on?")

        return leaf()

    def old() -> str:
        return "old"

    def new() -> str:
        return "new"

    first = ReactiveRunner(tree(old), StateManager(State))
    await first.run(checkpointer=checkpointer, max_ticks=1)
    import asyncio

    task = asyncio.create_task(first.run(checkpointer=checkpointer))
    while not first.pending:
        await asyncio.sleep(0)
    first.cancel()
    await task
    assert (await run(tree(new), checkpointer=checkpointer)).state.tags == ["old"]
