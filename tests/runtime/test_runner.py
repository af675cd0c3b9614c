"""A run from its start to its end, with restores in between."""

import operator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import (
    Ask,
    ReactiveRunner,
    RestorePolicy,
    Selector,
    Sequence,
    StateManager,
    Status,
    SuspensionMode,
    node,
)
from jianmu.errors import CheckpointNotFoundError, RunError, UnknownQuestionError
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class Log(BaseModel):
    name: str = ""
    log: Annotated[list[str], operator.add] = []


@node
async def say(ctx: LeafContext, what: str) -> dict[str, Any]:
    return {"log": [what]}


@node
async def fail(ctx: LeafContext) -> bool:
    ctx.update({"log": ["failed"]})
    return False


@node
async def explode(ctx: LeafContext) -> None:
    ctx.update({"log": ["never seen"]})
    raise ValueError("boom")


@node
def named(ctx: LeafContext) -> bool:
    return bool(ctx.state.name)


async def test_a_sequence_runs_to_its_end_and_returns_the_state() -> None:
    runner = ReactiveRunner(Sequence("root", True, [named(), say("a"), say("b")]), StateManager(Log))
    result = await runner.run({"name": "x"})
    assert (result.status, result.outcome) == (Status.SUCCESS, "completed")
    assert result.state == Log(name="x", log=["a", "b"])
    assert result.step == result.ticks == 3


async def test_a_returned_failure_commits_and_an_exception_drops_the_update() -> None:
    tree = Selector("root", True, [fail(), explode(name="bang"), say("last")])
    runner = ReactiveRunner(tree, StateManager(Log))
    result = await runner.run()
    assert result.status is Status.SUCCESS
    assert result.state.log == ["failed", "last"]
    assert isinstance(result.errors["0/1"], ValueError)
    assert isinstance(tree.children[1].error, ValueError)  # type: ignore[attr-defined]


async def test_a_refused_update_fails_the_leaf_and_changes_nothing() -> None:
    @node
    async def wrong(ctx: LeafContext) -> dict[str, Any]:
        return {"name": "y", "log": 3}

    result = await ReactiveRunner(wrong(), StateManager(Log)).run({"name": "x"})
    assert result.status is Status.FAILURE
    assert result.state == Log(name="x")


def ask_tree() -> Sequence:
    return Sequence("root", True, [say("a"), Ask("go on?", into="name"), say("b")])


async def test_a_yielded_question_is_answered_in_a_later_run() -> None:
    checkpointer = InMemoryCheckpointer()
    first = await ReactiveRunner(ask_tree(), StateManager(Log)).run(
        checkpointer=checkpointer, thread_id="t", suspension_mode=SuspensionMode.YIELD
    )
    assert first.outcome == "suspended"
    assert first.status is Status.RUNNING
    [question] = first.pending
    assert question.payload == "go on?"

    again = await ReactiveRunner(ask_tree(), StateManager(Log)).run(
        checkpointer=checkpointer, thread_id="t", suspension_mode=SuspensionMode.YIELD
    )
    assert again.pending == first.pending
    assert again.step > first.step

    last = await ReactiveRunner(ask_tree(), StateManager(Log)).run(
        checkpointer=checkpointer, thread_id="t", answers={question.id: "yes"}
    )
    assert last.outcome == "completed"
    assert last.state == Log(name="yes", log=["a", "b"])
    assert last.step > again.step

    same = await ReactiveRunner(ask_tree(), StateManager(Log)).run(
        checkpointer=checkpointer, thread_id="t", answers={question.id: "yes"}
    )
    assert (same.ticks, same.step, same.state) == (0, last.step, last.state)


async def test_an_answer_to_no_open_question_is_an_error_and_changes_nothing() -> None:
    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(ask_tree(), StateManager(Log))
    first = await runner.run(checkpointer=checkpointer, suspension_mode=SuspensionMode.YIELD)
    before = checkpointer.get_checkpoint("default")
    with pytest.raises(UnknownQuestionError, match="nonsense"):
        await runner.run(checkpointer=checkpointer, answers={"nonsense": 1})
    assert checkpointer.get_checkpoint("default") == before
    assert first.pending


async def test_restore_policies() -> None:
    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(Sequence("root", True, [say("a")]), StateManager(Log))
    with pytest.raises(CheckpointNotFoundError):
        await runner.run(checkpointer=checkpointer, restore_policy=RestorePolicy.REQUIRED)
    first = await runner.run({"name": "x"}, checkpointer=checkpointer)
    stored = await runner.run(checkpointer=checkpointer, restore_policy=RestorePolicy.REQUIRED)
    assert (stored.ticks, stored.step, stored.state) == (0, first.step, first.state)
    fresh = await runner.run({"name": "y"}, checkpointer=checkpointer, restore_policy=RestorePolicy.NEVER)
    assert fresh.state == Log(name="y", log=["a"])
    assert fresh.step > first.step


async def test_a_finished_run_with_new_input_is_a_new_round_on_the_same_state() -> None:
    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(Sequence("root", True, [say("a"), say("b")]), StateManager(Log))
    first = await runner.run({"name": "x", "log": ["in"]}, checkpointer=checkpointer)
    second = await runner.run({"log": ["again"]}, checkpointer=checkpointer)
    assert second.state == Log(name="x", log=["in", "a", "b", "again", "a", "b"])
    assert second.step > first.step


async def test_run_sync_inside_a_loop_says_so() -> None:
    runner = ReactiveRunner(say("a"), StateManager(Log))
    with pytest.raises(RunError, match="await"):
        runner.run_sync()


def test_one_runner_serves_several_event_loops() -> None:
    runner = ReactiveRunner(say("a"), StateManager(Log))
    checkpointer = InMemoryCheckpointer()
    assert runner.run_sync(checkpointer=checkpointer, thread_id="1").state.log == ["a"]
    assert runner.run_sync(checkpointer=checkpointer, thread_id="2").state.log == ["a"]
