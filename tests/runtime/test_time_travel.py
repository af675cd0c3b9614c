"""Going back to an earlier step: in a copy, or in place when asked to."""

from __future__ import annotations

import operator
import sqlite3
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import Ask, ReactiveRunner, RestorePolicy, Sequence, StateManager, SuspensionMode, node
from jianmu.errors import (
    CapabilityError,
    CheckpointCorruptError,
    CheckpointExistsError,
    CheckpointNotFoundError,
    ConfigError,
    JianmuError,
    StateValidationError,
)
from jianmu.memory import SqliteCheckpointer
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext
from tests.support.checkpointers import TwoMethods


class State(BaseModel):
    log: Annotated[list[str], operator.add] = []
    answer: str = ""


@pytest.fixture(params=["file", "memory"])
def checkpointer(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FileCheckpointer(tmp_path) if request.param == "file" else InMemoryCheckpointer()


def runner(keys: list[str]) -> ReactiveRunner:
    @node
    async def say(ctx: LeafContext, what: str) -> dict[str, Any]:
        await ctx.once("key", lambda: keys.append(ctx.idempotency_key))
        return {"log": [what]}

    return ReactiveRunner(Sequence("s", True, [say("a"), say("b"), say("c")]), StateManager(State))


def step_after_a(checkpointer: Any) -> int:
    """The first step in which the first leaf has ended."""
    steps = sorted(each.step for each in checkpointer.list_checkpoints("t"))
    return next(
        step for step in steps if checkpointer.get_checkpoint("t", step=step)["state"]["log"] == ["a"]
    )


async def test_a_fork_goes_on_from_the_step_and_leaves_the_thread_as_it_is(checkpointer: Any) -> None:
    keys: list[str] = []
    first = await runner(keys).run(checkpointer=checkpointer, thread_id="t")
    before = [each.step for each in checkpointer.list_checkpoints("t")]
    step = step_after_a(checkpointer)
    fork = await runner(keys).run(checkpointer=checkpointer, thread_id="t", from_step=step, fork_to="u")
    assert fork.state.log == ["a", "b", "c"]
    assert fork.step > step
    assert [each.step for each in checkpointer.list_checkpoints("t")] == before
    assert checkpointer.get_checkpoint("t")["step"] == first.step
    assert len(keys) == 5  # a had ended by then
    assert len(set(keys)) == 5  # a fork's effects are other effects

    with pytest.raises(CheckpointExistsError, match="'u'"):
        await runner(keys).run(checkpointer=checkpointer, thread_id="t", from_step=step, fork_to="u")
    again = await runner(keys).run(checkpointer=checkpointer, thread_id="t", from_step=step, fork_to="v")
    assert again.state.log == ["a", "b", "c"]
    assert len(set(keys)) == len(keys) == 7


async def test_a_thread_forked_by_hand_has_an_identity_of_its_own(checkpointer: Any) -> None:
    keys: list[str] = []
    await runner(keys).run(checkpointer=checkpointer, thread_id="t")
    checkpointer.fork_thread("t", "u", step=step_after_a(checkpointer))
    await runner(keys).run(checkpointer=checkpointer, thread_id="u")
    assert len(set(keys)) == len(keys) == 5


async def test_truncation_drops_the_later_steps_and_does_their_work_again(checkpointer: Any) -> None:
    keys: list[str] = []
    await runner(keys).run(checkpointer=checkpointer, thread_id="t")
    step = step_after_a(checkpointer)
    for round in (1, 2):
        result = await runner(keys).run(
            checkpointer=checkpointer, thread_id="t", from_step=step, truncate=True
        )
        assert result.state.log == ["a", "b", "c"]
        steps = [each.step for each in checkpointer.list_checkpoints("t")]
        assert steps == sorted(set(steps), reverse=True)
        assert len(set(keys)) == len(keys) == 3 + 2 * round  # each timeline's effects are its own


async def test_a_question_can_be_answered_anew_in_a_fork(checkpointer: Any) -> None:
    def asking() -> ReactiveRunner:
        return ReactiveRunner(Ask("which?", into="answer"), StateManager(State))

    suspended = await asking().run(
        checkpointer=checkpointer, thread_id="t", suspension_mode=SuspensionMode.YIELD
    )
    [question] = suspended.pending
    await asking().run(checkpointer=checkpointer, thread_id="t", answers={question.id: "left"})
    fork = await asking().run(
        checkpointer=checkpointer,
        thread_id="t",
        from_step=suspended.step,
        fork_to="u",
        answers={question.id: "right"},
    )
    assert fork.state.answer == "right"
    unchanged = await asking().run(checkpointer=checkpointer, thread_id="t")
    assert unchanged.state.answer == "left"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"from_step": 2}, ConfigError, "fork_to.*truncate"),
        ({"from_step": 2, "fork_to": "u", "truncate": True}, ConfigError, "one of them"),
        ({"truncate": True}, ConfigError, "from_step"),
        ({"from_step": 2, "fork_to": "t"}, ConfigError, "another id"),
        (
            {"from_step": 2, "fork_to": "u", "restore_policy": RestorePolicy.NEVER},
            ConfigError,
            "NEVER",
        ),
        ({"from_step": 99, "fork_to": "u"}, CheckpointNotFoundError, "99"),
        ({"from_step": 99, "truncate": True}, CheckpointNotFoundError, "99"),
    ],
)
async def test_history_is_never_rewritten_by_mistake(
    checkpointer: Any, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    await runner([]).run(checkpointer=checkpointer, thread_id="t")
    before = [each.step for each in checkpointer.list_checkpoints("t")]
    with pytest.raises(error, match=words):
        await runner([]).run(checkpointer=checkpointer, thread_id="t", **arguments)
    assert [each.step for each in checkpointer.list_checkpoints("t")] == before
    assert checkpointer.list_threads() == ["t"]


async def test_a_back_end_without_history_says_so() -> None:
    checkpointer = TwoMethods()
    await runner([]).run(checkpointer=checkpointer, thread_id="t")
    with pytest.raises(CapabilityError, match="TwoMethods does not offer fork_to="):
        await runner([]).run(checkpointer=checkpointer, thread_id="t", from_step=1, fork_to="u")
    with pytest.raises(ConfigError, match="checkpointer"):
        await runner([]).run(thread_id="t", from_step=1, fork_to="u")


def everything_in(checkpointer: Any) -> dict[tuple[str, int], Any]:
    return {
        (thread, each.step): checkpointer.get_checkpoint(thread, step=each.step)
        for thread in checkpointer.list_threads()
        for each in checkpointer.list_checkpoints(thread)
    }


@pytest.mark.parametrize("how", ["truncate", "fork"])
@pytest.mark.parametrize("wrong", ["tree", "answer", "step", "taken"])
async def test_a_journey_that_is_refused_changes_nothing(checkpointer: Any, how: str, wrong: str) -> None:
    keys: list[str] = []
    await runner(keys).run(checkpointer=checkpointer, thread_id="t")
    await runner(keys).run(checkpointer=checkpointer, thread_id="taken")
    step = step_after_a(checkpointer)
    before = everything_in(checkpointer)
    options: dict[str, Any] = {"from_step": step, "truncate": True}
    if how == "fork":
        options = {"from_step": step, "fork_to": "taken" if wrong == "taken" else "new"}
    elif wrong == "taken":
        pytest.skip("nothing is taken in place")
    other = runner(keys)
    if wrong == "tree":
        other.root.add_child(Ask("?"))
    elif wrong == "answer":
        options["answers"] = {"no such question": 1}
    elif wrong == "step":
        options["from_step"] = 999
    with pytest.raises(JianmuError):
        await other.run(checkpointer=checkpointer, thread_id="t", **options)
    assert before == everything_in(checkpointer)


async def test_a_damaged_newest_step_can_be_cut_off_by_a_run(tmp_path: Path) -> None:
    keys: list[str] = []
    with SqliteCheckpointer(tmp_path / "c.db") as checkpointer:
        await runner(keys).run(checkpointer=checkpointer, thread_id="t")
        step = step_after_a(checkpointer)
        with sqlite3.connect(tmp_path / "c.db", isolation_level=None) as database:
            database.execute(
                "UPDATE jianmu_step SET sum = sum + 1 WHERE step = (SELECT max(step) FROM jianmu_step)"
            )
        database.close()
        with pytest.raises(CheckpointCorruptError):
            await runner(keys).run(checkpointer=checkpointer, thread_id="t")
        result = await runner(keys).run(
            checkpointer=checkpointer, thread_id="t", from_step=step, truncate=True
        )
    assert result.state.log == ["a", "b", "c"]
    assert len(set(keys)) == len(keys)


async def test_input_at_an_earlier_step_changes_the_state_that_goes_on(checkpointer: Any) -> None:
    first = await runner([]).run(checkpointer=checkpointer, thread_id="t")
    step = step_after_a(checkpointer)
    fork = await runner([]).run(
        {"answer": "other", "log": ["changed"]},
        checkpointer=checkpointer,
        thread_id="t",
        from_step=step,
        fork_to="u",
    )
    assert fork.state == State(log=["a", "changed", "b", "c"], answer="other")
    stored = await runner([]).run(checkpointer=checkpointer, thread_id="t")
    assert stored.state == first.state
    cut = await runner([]).run(
        State(answer="third"), checkpointer=checkpointer, thread_id="t", from_step=step, truncate=True
    )
    assert cut.state == State(log=["a", "b", "c"], answer="third")


async def test_input_at_an_earlier_step_is_saved_before_a_leaf_goes_on(checkpointer: Any) -> None:
    await runner([]).run(checkpointer=checkpointer, thread_id="t")
    seen: list[str] = []

    @node
    async def say(ctx: LeafContext, what: str) -> dict[str, Any]:
        seen.append(checkpointer.get_checkpoint("u")["state"]["answer"])
        return {"log": [what]}

    say._function.__qualname__ = "runner.<locals>.say"  # the same tree as `runner` makes
    again = ReactiveRunner(Sequence("s", True, [say("a"), say("b"), say("c")]), StateManager(State))
    await again.run(
        {"answer": "new"},
        checkpointer=checkpointer,
        thread_id="t",
        from_step=step_after_a(checkpointer),
        fork_to="u",
    )
    assert seen == ["new", "new"]


async def test_input_that_the_schema_refuses_leaves_no_fork_and_cuts_nothing(checkpointer: Any) -> None:
    await runner([]).run(checkpointer=checkpointer, thread_id="t")
    before = everything_in(checkpointer)
    step = step_after_a(checkpointer)
    finished = max(each.step for each in checkpointer.list_checkpoints("t"))
    for options in ({"from_step": step, "truncate": True}, {"from_step": step, "fork_to": "u"}):
        with pytest.raises(StateValidationError, match="nonsense"):
            await runner([]).run({"nonsense": 1}, checkpointer=checkpointer, thread_id="t", **options)
    with pytest.raises(StateValidationError, match="nonsense"):
        await runner([]).run(
            {"nonsense": 1}, checkpointer=checkpointer, thread_id="t", from_step=finished, fork_to="u"
        )
    assert everything_in(checkpointer) == before


async def test_a_fork_without_a_step_begins_at_the_newest(checkpointer: Any) -> None:
    first = await runner([]).run(checkpointer=checkpointer, thread_id="t")
    copied = await runner([]).run(checkpointer=checkpointer, thread_id="t", fork_to="u")
    assert (copied.ticks, copied.state) == (0, first.state)
    again = await runner([]).run({}, checkpointer=checkpointer, thread_id="t", fork_to="v")
    assert again.state.log == ["a", "b", "c"] * 2


async def test_a_run_that_just_goes_on_takes_no_input_but_its_fork_does(checkpointer: Any) -> None:
    await runner([]).run(checkpointer=checkpointer, thread_id="t", max_ticks=2)
    fork = await runner([]).run({"answer": "x"}, checkpointer=checkpointer, thread_id="t", fork_to="u")
    assert fork.state == State(log=["a", "b", "c"], answer="x")
    same = await runner([]).run({"answer": "x"}, checkpointer=checkpointer, thread_id="t")
    assert same.state == State(log=["a", "b", "c"])
