"""What a caller sees while an agent works."""

from __future__ import annotations

from dataclasses import dataclass, field

from jianmu.agents.approval import PendingApproval
from jianmu.agents.chat_model import FinishReason, StreamRestarted, TextDelta, ToolCallDelta, Usage
from jianmu.messages import Message, ToolCall

__all__ = [
    "AgentEvent",
    "AgentResult",
    "ApprovalNeeded",
    "ModelFinished",
    "ToolFinished",
    "ToolStarted",
    "TurnFinished",
]

_EXPLANATIONS = {
    "interrupted": "interrupted: the thread keeps what there is; say something to go on",
    "cancelled": "cancelled at the last saved step: run again with the same text, or none, to go on",
}


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How a turn ended.

    Attributes:
        text: The model's answer; "" when it gave none.
        outcome: ``"answered"``; ``"suspended"`` (a person has to decide: see `pending`); ``"step_limit"``;
            ``"interrupted"`` (ended by `interrupt` with what there is); ``"cancelled"`` (stopped by `cancel`
            at its last saved step: it goes on when it is run again).
        thread_id: The thread.
        messages: What the turn added after the user's message.
        usage: Tokens of the whole turn.
        pending: The calls that wait for a decision.
    """

    text: str
    outcome: str
    thread_id: str
    messages: tuple[Message, ...] = ()
    usage: Usage = field(default_factory=Usage)
    pending: tuple[PendingApproval, ...] = ()

    @property
    def explanation(self) -> str:
        """Why there is no answer, and what to do about it; "" after an answer."""
        if self.outcome == "suspended":
            waiting = ", ".join(each.tool or "a question" for each in self.pending)
            return (
                f"waiting for a decision on {waiting}: run again with answers={{pending.id: True or False}}"
            )
        if self.outcome == "step_limit":
            steps = sum(message.role == "assistant" for message in self.messages)
            return (
                f"stopped after {steps} completions (max_steps), with the model still calling tools: say "
                "something, e.g. 'go on', to give it as many again, or raise max_steps"
            )
        return _EXPLANATIONS.get(self.outcome, "")


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """One completion is whole and saved; after a resume it comes without deltas."""

    message: Message
    usage: Usage
    finish_reason: FinishReason
    model: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run; after a kill it may start again."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool's result is saved."""

    call: ToolCall
    result: Message


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """The turn is suspended until a person decides on a call."""

    approval: PendingApproval


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The last event of a turn."""

    result: AgentResult


AgentEvent = (
    TextDelta
    | ToolCallDelta
    | StreamRestarted
    | ModelFinished
    | ToolStarted
    | ToolFinished
    | ApprovalNeeded
    | TurnFinished
)
