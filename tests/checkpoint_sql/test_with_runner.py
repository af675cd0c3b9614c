"""Whole runs over both SQL back ends: resumed elsewhere, gone back to, and taken over."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, Sequence, StateManager, node
from jianmu.errors import LeaseLostError, ThreadBusyError
from tests.checkpoint_sql.conftest import Backend


class Log(BaseModel):
    log: Annotated[list[str], operator.add] = []


@node
async def one(ctx: Any) -> dict[str, Any]:
    return {"log": ["one"]}


@node
async def two(ctx: Any) -> dict[str, Any]:
    return {"log": [await ctx.once("two", lambda: "two")]}


def runner(*leaves: Any) -> ReactiveRunner:
    root = Sequence("root", memory=True, children=[leaf() for leaf in leaves or (one, two)])
    return ReactiveRunner(root, StateManager(Log))


async def test_a_run_goes_on_in_another_process_and_can_be_gone_back_to(backend: Backend) -> None:
    await runner().run(checkpointer=backend.open(), thread_id="t", max_ticks=2)
    result = await runner().run(checkpointer=backend.open(), thread_id="t")
    assert result.state.log == ["one", "two"]
    store = backend.open()
    steps = [info.step for info in store.list_checkpoints("t")]
    early = steps[-1]
    forked = await runner().run(checkpointer=store, thread_id="t", from_step=early, fork_to="fork")
    assert forked.state.log == ["one", "two"]
    assert [info.step for info in store.list_checkpoints("t")] == steps
    again = await runner().run(checkpointer=store, thread_id="t", from_step=early, truncate=True)
    assert again.state.log == ["one", "two"]
    assert store.read_journal("t") == []
    assert store.list_threads() == ["fork", "t"]


async def test_a_thread_that_another_run_holds_is_refused_at_once(backend: Backend) -> None:
    with backend.open().acquire("t"), pytest.raises(ThreadBusyError):
        await runner().run(checkpointer=backend.open(), thread_id="t")


async def test_a_run_whose_thread_is_deleted_ends_and_does_not_bring_it_back(backend: Backend) -> None:
    other = backend.open()

    @node
    async def deleted(ctx: Any) -> dict[str, Any]:
        other.delete_thread("t")
        return {"log": ["late"]}

    with pytest.raises(LeaseLostError):
        await runner(one, deleted).run(checkpointer=backend.open(), thread_id="t")
    assert other.get_checkpoint("t") is None
    assert other.list_threads() == []
