"""Questions and answers, in process and over restarts."""

from __future__ import annotations

import asyncio
import operator
import threading
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import Ask, Parallel, ReactiveRunner, Sequence, StateManager, Status, SuspensionMode, node
from jianmu.errors import EncodeError, UnknownQuestionError
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext, ParallelPolicy


class State(BaseModel):
    answer: Any = None
    other: Any = None
    log: Annotated[list[str], operator.add] = []


async def asked(runner: ReactiveRunner, count: int = 1) -> None:
    while len(runner.pending) < count:
        await asyncio.sleep(0)


async def test_an_answer_from_another_thread_wakes_a_waiting_run(checkpointer: Any) -> None:
    runner = ReactiveRunner(Ask({"ok": "?"}, into="answer"), StateManager(State))
    task = asyncio.create_task(runner.run(checkpointer=checkpointer))
    await asked(runner)
    [question] = runner.pending
    assert (question.path, question.payload) == ("0", {"ok": "?"})
    when = datetime(2026, 1, 1, tzinfo=UTC)
    thread = threading.Thread(target=runner.answer, args=(question.id, when))
    thread.start()
    thread.join()
    result = await asyncio.wait_for(task, 10)
    assert result.state.answer == when
    assert result.pending == runner.pending == ()


async def test_an_answer_is_saved_before_its_leaf_gets_it() -> None:
    checkpointer = InMemoryCheckpointer()
    saved: list[Any] = []

    @node
    async def leaf(ctx: LeafContext) -> None:
        await ctx.ask("ok?", key="k")
        envelope = checkpointer.get_checkpoint("default")
        assert envelope is not None
        saved.append(envelope["runtime_metadata"]["runner"]["questions"])

    runner = ReactiveRunner(leaf(), StateManager(State))
    task = asyncio.create_task(runner.run(checkpointer=checkpointer))
    await asked(runner)
    runner.answer(runner.pending[0].id, "yes")
    assert (await task).status is Status.SUCCESS
    assert saved[0]["answers"] == {"0:1:k": "yes"}


async def test_a_question_in_a_waiting_run_is_saved_at_once() -> None:
    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(Ask("ok?"), StateManager(State))
    events: list[Any] = []
    runner.event_bus.subscribe(lambda event: events.append((event.type, dict(event.payload))))
    task = asyncio.create_task(runner.run(checkpointer=checkpointer, checkpoint_interval=100))
    await asked(runner)
    while True:
        envelope = checkpointer.get_checkpoint("default")
        if envelope and envelope["runtime_metadata"]["runner"]["questions"]["open"]:
            break
        await asyncio.sleep(0)
    runner.answer(runner.pending[0].id, False)
    assert (await task).status is Status.FAILURE
    saved = [payload for type, payload in events if type == "checkpoint.saved"]
    assert [each["forced"] for each in saved] == [True] * 4  # first step, question, answer, end
    assert [each["step"] for each in saved] == sorted({each["step"] for each in saved})
    types = [type for type, _ in events if type.startswith("question")]
    assert types == ["question.asked", "question.answered"]


async def test_the_same_answer_again_is_no_error_and_another_one_is() -> None:
    runner = ReactiveRunner(
        Sequence("s", True, [Ask("a?", into="answer"), Ask("b?", into="other")]), StateManager(State)
    )
    task = asyncio.create_task(runner.run())
    await asked(runner)
    [question] = runner.pending
    with pytest.raises(EncodeError):
        runner.answer(question.id, object())
    runner.answer(question.id, 1)
    runner.answer(question.id, 1)
    with pytest.raises(UnknownQuestionError, match="differently"):
        runner.answer(question.id, 2)
    while not runner.pending or runner.pending[0].payload != "b?":
        await asyncio.sleep(0)
    runner.answer(question.id, 1)
    with pytest.raises(UnknownQuestionError, match="no open question"):
        runner.answer("nonsense", 1)
    runner.answer(runner.pending[0].id, 2)
    result = await task
    assert (result.state.answer, result.state.other) == (1, 2)
    with pytest.raises(UnknownQuestionError, match="nothing is running"):
        runner.answer(question.id, 1)


def two_questions() -> Parallel:
    children = [Ask("a?", into="answer", name="same"), Ask("b?", into="other", name="same")]
    return Parallel("p", ParallelPolicy.SuccessOnAll(synchronise=True), children)


async def test_questions_may_be_answered_one_by_one_over_restarts(checkpointer: Any) -> None:
    async def run(answers: dict[str, Any] | None = None) -> Any:
        return await ReactiveRunner(two_questions(), StateManager(State)).run(
            checkpointer=checkpointer, suspension_mode=SuspensionMode.YIELD, answers=answers
        )

    first = await run()
    assert [each.payload for each in first.pending] == ["a?", "b?"]
    a, b = first.pending
    second = await run({a.id: "A"})
    assert second.pending == (b,)
    assert second.state.answer == "A"
    again = await run({a.id: "A"})
    assert again.pending == (b,)
    last = await run({b.id: "B"})
    assert (last.outcome, last.state.answer, last.state.other) == ("completed", "A", "B")


async def test_a_suspension_lets_open_effects_end_and_their_answers_count(checkpointer: Any) -> None:
    calls: list[str] = []

    @node
    async def slow_effect(ctx: LeafContext) -> dict[str, Any]:
        async def effect() -> str:
            calls.append("effect")
            await asyncio.sleep(0.05)
            return "done"

        return {"log": [await ctx.once("e", effect)]}

    @node
    async def endless(ctx: LeafContext) -> None:
        if not ctx.state.other:
            await asyncio.Event().wait()

    def tree() -> Parallel:
        children = [slow_effect(), endless(), Ask("go?", into="answer")]
        return Parallel("p", ParallelPolicy.SuccessOnAll(synchronise=True), children)

    suspended = await ReactiveRunner(tree(), StateManager(State)).run(
        checkpointer=checkpointer, suspension_mode=SuspensionMode.YIELD
    )
    assert suspended.outcome == "suspended"
    assert suspended.state.log == ["done"]
    state = StateManager(State)
    runner = ReactiveRunner(tree(), state)
    task = asyncio.create_task(runner.run(checkpointer=checkpointer, answers={suspended.pending[0].id: True}))
    while runner.root.status is not Status.RUNNING:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    state.update({"other": True})
    runner.cancel()
    await task
    assert calls == ["effect"]


async def test_effects_that_do_not_end_in_time_are_cancelled_and_repeated() -> None:
    checkpointer = InMemoryCheckpointer()
    keys: list[str] = []

    @node
    async def stuck(ctx: LeafContext) -> None:
        async def effect() -> None:
            keys.append(ctx.idempotency_key)
            if len(keys) == 1:
                await asyncio.Event().wait()

        await ctx.once("e", effect)

    def tree() -> Parallel:
        return Parallel("p", ParallelPolicy.SuccessOnAll(synchronise=True), [stuck(), Ask("go?")])

    runner = ReactiveRunner(tree(), StateManager(State))
    runner.drain_timeout = 0.05
    suspended = await runner.run(checkpointer=checkpointer, suspension_mode=SuspensionMode.YIELD)
    await ReactiveRunner(tree(), StateManager(State)).run(
        checkpointer=checkpointer, answers={suspended.pending[0].id: True}
    )
    assert len(keys) == 2
    assert keys[0] == keys[1]


async def test_a_leaf_may_ask_several_times_without_keys(checkpointer: Any) -> None:
    @node
    async def interview(ctx: LeafContext) -> dict[str, Any]:
        name = await ctx.ask("name?")
        return {"answer": f"{name}, {await ctx.ask('age?')}"}

    async def run(answers: dict[str, Any] | None = None) -> Any:
        return await ReactiveRunner(interview(), StateManager(State)).run(
            checkpointer=checkpointer, suspension_mode=SuspensionMode.YIELD, answers=answers
        )

    first = await run()
    second = await run({first.pending[0].id: "Mei"})
    assert second.pending[0].payload == "age?"
    last = await run({second.pending[0].id: 30})
    assert last.state.answer == "Mei, 30"
    assert last.outcome == "completed"


async def test_the_payload_of_an_ask_leaf_can_come_from_the_state() -> None:
    runner = ReactiveRunner(Ask(lambda state: f"{state.other}?", into="answer"), StateManager(State))
    task = asyncio.create_task(runner.run({"other": "sure"}))
    await asked(runner)
    assert runner.pending[0].payload == "sure?"
    runner.answer(runner.pending[0].id, {"a": 1})
    assert (await task).state.answer == {"a": 1}
