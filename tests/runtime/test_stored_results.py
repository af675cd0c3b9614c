"""A thread that has ended, run again: what is said, what is given back, how to begin anew."""

from __future__ import annotations

import logging
import operator
import pickle
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, Selector, Sequence, StateManager, Status, node
from jianmu.errors import (
    StateError,
    StateValidationError,
    StateVersionError,
    StoredLeafError,
    TreeChangedError,
)
from jianmu.memory import SqliteCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import AsyncNode, LeafContext


class State(BaseModel):
    broken: bool = False
    log: Annotated[list[str], operator.add] = []


@node
async def prepare(ctx: LeafContext) -> dict[str, Any]:
    return {"log": ["prepared"]}


@node
async def deliver(ctx: LeafContext) -> dict[str, Any]:
    if ctx.state.broken:
        raise ZeroDivisionError("the scale shows 0 kg")
    return {"log": ["delivered"]}


def runner() -> ReactiveRunner:
    return ReactiveRunner(Sequence("job", True, [prepare(), deliver()]), StateManager(State))


async def run(checkpointer: Any, input_data: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    return await runner().run(input_data, checkpointer=checkpointer, thread_id="t", **kwargs)


def told(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if "stored result" in record.getMessage()]


async def test_a_thread_that_succeeded_says_once_that_nothing_is_run(
    checkpointer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jianmu.runtime")
    first = await run(checkpointer)
    assert told(caplog) == []
    assert (await run(checkpointer)).ticks == 0
    [record] = told(caplog)
    assert record.levelno == logging.INFO
    for word in ("'t'", f"step {first.step} ", "SUCCESS", "input_data=", "thread_id", "delete_thread('t')"):
        assert word in record.getMessage()


async def test_a_thread_that_failed_warns_and_gives_its_reason_again(
    checkpointer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first = await run(checkpointer, {"broken": True})
    assert isinstance(first.errors["0/1"], ZeroDivisionError)
    for _ in range(2):
        caplog.clear()
        again = await run(checkpointer)
        assert (again.status, again.outcome, again.ticks) == (Status.FAILURE, "completed", 0)
        [record] = told(caplog)
        assert record.levelno == logging.WARNING
        assert f"step {first.step} with FAILURE" in record.getMessage()
        error = again.errors["0/1"]
        assert isinstance(error, StoredLeafError)
        assert (error.kind, error.message, error.path) == (
            "ZeroDivisionError",
            "the scale shows 0 kg",
            "0/1",
        )
        assert str(error) == "ZeroDivisionError: the scale shows 0 kg"
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


async def test_a_failed_thread_is_retried_from_its_root_by_input(checkpointer: Any) -> None:
    await run(checkpointer, {"broken": True})
    retried = await run(checkpointer, {"broken": False})
    assert (retried.status, retried.errors) == (Status.SUCCESS, {})
    assert retried.state.log == ["prepared", "prepared", "delivered"]
    assert (await run(checkpointer)).errors == {}


async def test_a_failed_thread_is_retried_from_the_step_before_the_failure(tmp_path: Path) -> None:
    with SqliteCheckpointer(tmp_path / "c.db") as checkpointer:
        failed = await run(checkpointer, {"broken": True})
        retried = await run(checkpointer, {"broken": False}, from_step=failed.step - 1, truncate=True)
        assert (retried.status, retried.state.log) == (Status.SUCCESS, ["prepared", "delivered"])


async def test_a_run_that_goes_on_after_a_kill_knows_the_errors_from_before(checkpointer: Any) -> None:
    def tree() -> Selector:
        return Selector("s", True, [deliver(), Sequence("instead", True, [prepare(), prepare()])])

    first = ReactiveRunner(tree(), StateManager(State))
    stopped = await first.run({"broken": True}, checkpointer=checkpointer, thread_id="t", max_ticks=3)
    assert (stopped.outcome, str(stopped.errors["0/0"])) == ("max_ticks", "the scale shows 0 kg")
    whole = await ReactiveRunner(tree(), StateManager(State)).run(checkpointer=checkpointer, thread_id="t")
    assert whole.status is Status.SUCCESS
    assert str(whole.errors["0/0"]) == "ZeroDivisionError: the scale shows 0 kg"


class Breaks(AsyncNode):
    def __init__(self, error: BaseException, name: str) -> None:
        super().__init__(name)
        self.reason = error

    async def run(self, ctx: LeafContext) -> None:
        raise self.reason


async def test_the_latest_errors_are_saved_and_the_beginning_of_their_messages() -> None:
    checkpointer = InMemoryCheckpointer()

    def tree() -> Selector:
        return Selector("s", True, [Breaks(ValueError(f"{n} " + "x" * 600), str(n)) for n in range(30)])

    live = await ReactiveRunner(tree(), StateManager(State)).run(checkpointer=checkpointer)
    assert len(live.errors) == 30
    stored = await ReactiveRunner(tree(), StateManager(State)).run(checkpointer=checkpointer)
    assert list(stored.errors) == [f"0/{n}" for n in range(10, 30)]
    assert all(len(error.message) == 500 for error in stored.errors.values())  # type: ignore[attr-defined]


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [Mute(), ValueError("half \ud83d and \0"), ValueError()])
async def test_an_exception_with_an_impossible_message_fails_its_leaf_alone(
    checkpointer: Any, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "jianmu.runtime")  # a traceback with half a pair is not for pytest

    def tree() -> Selector:
        return Selector("s", True, [Breaks(error, "bad"), prepare()])

    result = await ReactiveRunner(tree(), StateManager(State)).run(checkpointer=checkpointer)
    assert result.status is Status.SUCCESS
    again = await ReactiveRunner(tree(), StateManager(State)).run(checkpointer=checkpointer)
    assert str(again.errors["0/0"]).startswith(type(error).__name__)


class Other(BaseModel):
    x: int = 0


async def test_another_programs_thread_is_told_by_its_tree_before_its_state_is_read() -> None:
    checkpointer = InMemoryCheckpointer()
    await run(checkpointer)
    other = ReactiveRunner(Sequence("other", True, [prepare()]), StateManager(Other))
    with pytest.raises(TreeChangedError, match=r"thread 't'.*another program.*thread_id"):
        await other.run(checkpointer=checkpointer, thread_id="t")


@pytest.mark.parametrize(
    ("manager", "kind"),
    [(StateManager(Other), StateValidationError), (StateManager(State, version=2), StateVersionError)],
)
async def test_a_state_that_does_not_fit_names_the_thread_and_another_program_as_a_cause(
    manager: StateManager[Any], kind: type[StateError]
) -> None:
    checkpointer = InMemoryCheckpointer()
    first = await run(checkpointer)
    other = ReactiveRunner(runner().root, manager)
    before = checkpointer.get_checkpoint("t")
    with pytest.raises(kind, match=f"thread 't', step {first.step}: .*another program.*thread_id"):
        await other.run(checkpointer=checkpointer, thread_id="t")
    assert checkpointer.get_checkpoint("t") == before
