"""Approvals suspend the turn, survive a restart, and count for one exact call only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from jianmu.agents import ApprovalNeeded, ReActAgent
from jianmu.errors import ApprovalPendingError, UnknownQuestionError
from jianmu.memory import FileCheckpointer
from jianmu.messages import ToolCall
from jianmu.testing.scripted_model import Reply, ScriptedChatModel, ScriptedRequest
from jianmu.tools import Injected, tool

PAID: list[tuple[int, Any]] = []


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


@tool(requires_approval=True)
def pay(amount: int, deps: Annotated[Any, Injected] = None) -> str:
    """Pay."""
    PAID.append((amount, deps))
    return f"paid {amount}"


@tool
def look() -> str:
    """Look something up."""
    return "seen"


def rule(request: ScriptedRequest) -> Reply:
    last = request.messages[-1]
    if last.role == "user":
        return [
            ToolCall(id="p", name="pay", arguments={"amount": 5}),
            ToolCall(id="l", name="look", arguments={}),
        ]
    results = {m.tool_call_id: m.text for m in request.messages if m.role == "tool"}
    return f"pay said: {results['p']}"


def agent_in(folder: Path) -> ReActAgent:
    return ReActAgent(ScriptedChatModel(rule), tools=[pay, look], checkpointer=FileCheckpointer(folder))


@dataclass
class Deps:
    user: str


@pytest.mark.parametrize("deps", [None, {"user": "ada"}, Deps("ada")])
async def test_an_approved_call_runs_once_after_a_restart_with_any_deps(tmp_path: Path, deps: Any) -> None:
    first = await agent_in(tmp_path).run("pay", deps=deps)
    assert first.outcome == "suspended"
    (pending,) = first.pending
    assert (pending.tool, pending.arguments) == ("pay", {"amount": 5})
    assert PAID == []
    second = await agent_in(tmp_path).run("pay", answers={pending.id: True}, deps=deps)
    assert second.text == "pay said: paid 5"
    assert [(5, deps)] == PAID


async def test_a_refused_call_never_runs_and_the_model_sees_the_reason(tmp_path: Path) -> None:
    first = await agent_in(tmp_path).run("pay")
    answer = {"approved": False, "reason": "too much"}
    second = await agent_in(tmp_path).run(answers={first.pending[0].id: answer})
    assert second.text == "pay said: Not run: a person refused this call. too much"
    assert PAID == []


@pytest.mark.parametrize("answer", ["yes", 1, None, {"approved": "true"}, []])
async def test_only_a_clear_yes_approves(tmp_path: Path, answer: Any) -> None:
    first = await agent_in(tmp_path).run("pay")
    await agent_in(tmp_path).run(answers={first.pending[0].id: answer})
    assert PAID == []


async def test_a_call_changed_in_the_store_is_not_covered_by_the_approval(tmp_path: Path) -> None:
    first = await agent_in(tmp_path).run("pay")
    checkpointer = FileCheckpointer(tmp_path)
    envelope = checkpointer.get_checkpoint("default")
    assert envelope is not None
    state = json.loads(json.dumps(envelope["state"]).replace('"amount": 5', '"amount": 5000'))
    assert state != envelope["state"]
    checkpointer.save_checkpoint(
        "default", envelope["step"] + 1, state, envelope["tree"], envelope["runtime_metadata"]
    )
    checkpointer.close()
    second = await agent_in(tmp_path).run(answers={first.pending[0].id: True})
    assert PAID == []
    assert [pending.arguments for pending in second.pending] == [{"amount": 5000}]


async def test_a_new_text_does_not_pass_over_an_open_approval(tmp_path: Path) -> None:
    first = await agent_in(tmp_path).run("pay")
    with pytest.raises(ApprovalPendingError, match=first.pending[0].id):
        await agent_in(tmp_path).run("something else")
    assert PAID == []


async def test_an_answer_to_no_question_is_an_error(tmp_path: Path) -> None:
    await agent_in(tmp_path).run("pay")
    with pytest.raises(UnknownQuestionError):
        await agent_in(tmp_path).run(answers={"nonsense": True})
    assert PAID == []


async def test_asking_again_gives_the_same_question(tmp_path: Path) -> None:
    agent = agent_in(tmp_path)
    first = await agent.run("pay")
    again = await agent.run("pay")
    assert first.pending == again.pending
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]


async def test_the_stream_tells_what_waits(tmp_path: Path) -> None:
    events = [event async for event in agent_in(tmp_path).stream("pay")]
    (needed,) = [event for event in events if isinstance(event, ApprovalNeeded)]
    assert needed.approval.arguments == {"amount": 5}


async def test_two_calls_are_decided_one_by_one(tmp_path: Path) -> None:
    def two(request: ScriptedRequest) -> Reply:
        if request.messages[-1].role == "user":
            return [ToolCall(id=str(n), name="pay", arguments={"amount": n}) for n in (1, 2)]
        return "done"

    agent = ReActAgent(ScriptedChatModel(two), tools=[pay], checkpointer=FileCheckpointer(tmp_path))
    first = await agent.run("go")
    by_amount = {pending.arguments["amount"]: pending.id for pending in first.pending}
    second = await agent.run(answers={by_amount[1]: True})
    assert second.outcome == "suspended"
    assert [pending.arguments["amount"] for pending in second.pending] == [2]
    third = await agent.run(answers={by_amount[2]: False})
    assert third.text == "done"
    assert [amount for amount, _ in PAID] == [1]


async def test_the_same_answers_again_start_no_second_turn(tmp_path: Path) -> None:
    first = await agent_in(tmp_path).run("pay")
    answers = {first.pending[0].id: True}
    done = await agent_in(tmp_path).run("pay", answers=answers)
    agent = agent_in(tmp_path)
    try:
        again = await agent.run("pay", answers=answers)
    except UnknownQuestionError:
        pass
    else:
        assert again.text == done.text
    assert [amount for amount, _ in PAID] == [5]
    assert agent.model.requests == []  # type: ignore[attr-defined]


async def test_answers_with_a_new_text_are_not_lost_silently(tmp_path: Path) -> None:
    agent = agent_in(tmp_path)
    with pytest.raises(UnknownQuestionError):
        await agent.run("pay", answers={"x": True})
