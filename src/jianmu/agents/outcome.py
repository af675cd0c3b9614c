"""How a turn ended."""

from __future__ import annotations

from collections.abc import Mapping

from jianmu.agents.approval import PendingApproval
from jianmu.agents.events import AgentResult
from jianmu.agents.state import AgentState, turn_messages
from jianmu.agents.turn import Turn
from jianmu.errors import ChatModelError, RunError
from jianmu.runtime import Question, RunResult, Status

__all__ = ["raise_failure", "result_of"]


def raise_failure(turn: Turn, run: RunResult) -> None:
    """Raise what made the turn fail, if it did.

    Raises:
        Exception: What the model raised in this process.
        ChatModelError: What the model said when it failed in an earlier one.
        RunError: A leaf failed; its exception is chained.
    """
    if turn.failure is not None:
        raise turn.failure
    if run.outcome != "completed" or run.status is not Status.FAILURE:
        return
    for path, error in run.errors.items():
        raise RunError(f"leaf {path} of the agent failed: {type(error).__name__}: {error}") from error
    raise ChatModelError(run.state.error or "the turn failed")


def result_of(run: RunResult, thread_id: str) -> AgentResult:
    """Return a run's end as the caller of an agent sees it."""
    state: AgentState = run.state
    messages = turn_messages(state.messages)
    last = messages[-1] if messages else None
    outcome = run.outcome if run.outcome in ("suspended", "cancelled") else state.stopped or "answered"
    return AgentResult(
        text=last.text if last is not None and last.role == "assistant" else "",
        outcome=outcome,
        thread_id=thread_id,
        messages=tuple(messages),
        usage=state.usage,
        pending=tuple(_pending(question) for question in run.pending),
    )


def _pending(question: Question) -> PendingApproval:
    payload = question.payload
    if isinstance(payload, Mapping) and payload.get("kind") == "approval":
        return PendingApproval(question.id, payload["tool"], payload["arguments"])
    return PendingApproval(
        question.id, "", payload if isinstance(payload, Mapping) else {"question": payload}
    )
