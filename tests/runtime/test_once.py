"""Effects: called once, answered from the journal after a crash, known under one key."""

from __future__ import annotations

import asyncio
import enum
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, Sequence, StateManager, Status, node
from jianmu.errors import EncodeError
from jianmu.runtime import LeafContext
from jianmu.tools.ambient import current_idempotency_key


class State(BaseModel):
    n: int = 0


class Crash(BaseException):
    """Ends the leaf's process, as far as a test can."""


async def crash_after(runner: ReactiveRunner, reached: asyncio.Event, **kwargs: Any) -> None:
    """Leave a run as a killed process would: nothing is saved at its end."""
    task = asyncio.create_task(runner.run(**kwargs))
    await reached.wait()
    runner._save_checkpoint_now = nothing  # type: ignore[method-assign, assignment]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def nothing(*args: Any) -> None:
    pass


async def test_an_answered_effect_is_not_repeated_after_a_crash(checkpointer: Any) -> None:
    effects: list[str] = []
    reached = asyncio.Event()
    stop = asyncio.Event()

    @node
    async def pay(ctx: LeafContext) -> dict[str, Any]:
        def charge(amount: int) -> int:
            effects.append(ctx.idempotency_key)
            return amount

        first = await ctx.once("first", charge, 40)
        second = await ctx.once("second", charge, 2)
        reached.set()
        if not stop.is_set():
            await asyncio.Event().wait()
        return {"n": first + second}

    await crash_after(ReactiveRunner(pay(), StateManager(State)), reached, checkpointer=checkpointer)
    assert len(effects) == 2
    stop.set()
    result = await ReactiveRunner(pay(), StateManager(State)).run(checkpointer=checkpointer)
    assert (result.status, result.state.n) == (Status.SUCCESS, 42)
    assert len(effects) == 2


async def test_an_effect_whose_answer_was_not_saved_is_repeated_under_the_same_key(checkpointer: Any) -> None:
    effects: list[str] = []
    reached = asyncio.Event()

    @node
    async def pay(ctx: LeafContext) -> None:
        async def charge() -> None:
            effects.append(ctx.idempotency_key)
            reached.set()
            if len(effects) == 1:
                await asyncio.Event().wait()

        await ctx.once("charge", charge)

    await crash_after(ReactiveRunner(pay(), StateManager(State)), reached, checkpointer=checkpointer)
    await ReactiveRunner(pay(), StateManager(State)).run(checkpointer=checkpointer)
    assert len(effects) == 2
    assert effects[0] == effects[1]
    assert effects[0].endswith("/0/0/1/charge")


class Colour(enum.Enum):
    RED = "red"


class Receipt(BaseModel):
    at: datetime
    colour: Colour


async def test_an_answer_has_the_type_that_its_function_is_annotated_with() -> None:
    receipt = Receipt(at=datetime(2026, 1, 1, tzinfo=UTC), colour=Colour.RED)
    seen: list[Any] = []

    def annotated() -> Receipt:
        return receipt

    async def coroutine() -> list[Receipt]:
        return [receipt]

    @node
    async def leaf(ctx: LeafContext) -> None:
        seen.append(await ctx.once("a", annotated))
        seen.append(await ctx.once("b", coroutine))
        seen.append(await ctx.once("c", lambda: receipt, returns=Receipt))
        seen.append(await ctx.once("d", lambda: {"when": receipt.at}))

    await ReactiveRunner(leaf(), StateManager(State)).run()
    assert seen == [receipt, [receipt], receipt, {"when": receipt.at}]
    assert seen[0] is not receipt


async def test_an_answer_that_cannot_be_saved_fails_the_leaf_with_the_codec_s_error() -> None:
    @node
    async def leaf(ctx: LeafContext) -> None:
        await ctx.once("a", object)

    result = await ReactiveRunner(leaf(), StateManager(State)).run()
    assert result.status is Status.FAILURE
    assert isinstance(result.errors["0"], EncodeError)


async def test_the_same_key_at_the_same_time_is_one_effect() -> None:
    calls: list[int] = []

    async def effect() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return len(calls)

    seen: list[int] = []

    @node
    async def leaf(ctx: LeafContext) -> None:
        seen.extend(await asyncio.gather(*[ctx.once("same", effect) for _ in range(5)]))
        seen.append(await ctx.once("other", effect))

    await ReactiveRunner(leaf(), StateManager(State)).run()
    assert seen == [1, 1, 1, 1, 1, 2]


async def test_an_exception_is_not_an_answer() -> None:
    calls: list[int] = []

    def effect() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError
        return len(calls)

    @node
    async def leaf(ctx: LeafContext) -> dict[str, Any]:
        while True:
            try:
                return {"n": await ctx.once("try", effect)}
            except ConnectionError:
                continue

    assert (await ReactiveRunner(leaf(), StateManager(State)).run()).state.n == 3


async def test_every_activation_has_keys_of_its_own_and_tools_see_them() -> None:
    from py_trees.decorators import Repeat

    seen: list[str | None] = []

    @node
    async def leaf(ctx: LeafContext) -> None:
        seen.append(current_idempotency_key.get())
        await ctx.once("k", lambda: seen.append(current_idempotency_key.get()))
        assert ctx.idempotency_key == current_idempotency_key.get()

    tree = Sequence("root", True, [Repeat("twice", leaf(), 2), leaf()])
    result = await ReactiveRunner(tree, StateManager(State)).run()
    assert result.status is Status.SUCCESS, result.errors
    run_id, _, _ = str(seen[0]).partition("/")
    assert [str(key).removeprefix(run_id) for key in seen] == [
        "/0/0/0/0/1",
        "/0/0/0/0/1/k",
        "/0/0/0/0/2",
        "/0/0/0/0/2/k",
        "/0/0/1/1",
        "/0/0/1/1/k",
    ]
    assert current_idempotency_key.get() is None
