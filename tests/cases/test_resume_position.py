"""Resume positions and repeated effects, as users of other packages met them."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, Sequence, StateManager, Status, SuspensionMode, node
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    x: str = ""
    log: Annotated[list[str], operator.add] = []


@node
async def use_input(ctx: LeafContext, calls: list[str], name: str) -> dict[str, Any]:
    calls.append(name)
    return {"log": [f"{name}:{ctx.state.x}"]}


@pytest.fixture(params=["file", "memory"])
def checkpointer(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FileCheckpointer(tmp_path) if request.param == "file" else InMemoryCheckpointer()


async def test_one_tree_object_used_for_a_second_thread_does_all_its_work_again(checkpointer: Any) -> None:
    calls: list[str] = []
    tree = Sequence("root", True, [use_input(calls, "a", name="a"), use_input(calls, "b", name="b")])
    runner = ReactiveRunner(tree, StateManager(State))
    first = await runner.run({"x": "x"}, checkpointer=checkpointer, thread_id="t1")
    second = await runner.run({"x": "y"}, checkpointer=checkpointer, thread_id="t2")
    assert first.status is second.status is Status.SUCCESS
    assert calls == ["a", "b", "a", "b"]
    assert second.state.log == ["a:y", "b:y"]

    third = await runner.run({"x": "z"}, checkpointer=checkpointer, thread_id="t1")
    assert calls == ["a", "b"] * 3
    assert third.state.log == ["a:x", "b:x", "a:z", "b:z"]


@node
async def add(ctx: LeafContext, what: list[str]) -> dict[str, Any]:
    return {"log": what}


@node
async def wait_for_go(ctx: LeafContext) -> None:
    await ctx.ask("go?")


async def test_only_what_a_leaf_adds_is_reduced_and_only_once(checkpointer: Any) -> None:
    def tree() -> Sequence:
        inner = Sequence("inner", True, [add(["b"], name="b"), add([], name="nothing")])
        return Sequence("outer", True, [add(["a"], name="a"), wait_for_go(), inner])

    suspended = await ReactiveRunner(tree(), StateManager(State)).run(
        {"log": ["in"]}, checkpointer=checkpointer, thread_id="t", suspension_mode=SuspensionMode.YIELD
    )
    assert suspended.state.log == ["in", "a"]
    result = await ReactiveRunner(tree(), StateManager(State)).run(
        {"log": ["in"]},
        checkpointer=checkpointer,
        thread_id="t",
        answers={suspended.pending[0].id: True},
    )
    assert result.state.log == ["in", "a", "b"]
    for _ in range(5):
        loaded = await ReactiveRunner(tree(), StateManager(State)).run(
            checkpointer=checkpointer, thread_id="t"
        )
        assert (loaded.ticks, loaded.state.log) == (0, ["in", "a", "b"])
