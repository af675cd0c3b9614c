"""What an agent's thread holds between two steps."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from jianmu.agents.approval import Decision
from jianmu.agents.chat_model import Usage
from jianmu.messages import Message, ToolCall

__all__ = ["AgentState", "open_calls", "turn_messages"]


class AgentState(BaseModel):
    """The typed state of a `ReActAgent`; subclass it to add fields for leaves of your own.

    Attributes:
        messages: The whole conversation; an update appends.
        usage: Tokens of this turn so far; an update adds.
        decisions: Decisions on this turn's tool calls, by the digest of the exact call.
        stopped: Why the turn ended without an answer, or None.
        error: What the model's failure said, or None.
    """

    messages: Annotated[list[Message], operator.add] = Field(default_factory=list)
    usage: Usage = Usage()
    decisions: dict[str, Decision] = Field(default_factory=dict)
    stopped: str | None = None
    error: str | None = None


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the tool calls of the last message; none when it is not the assistant's."""
    last = messages[-1] if messages else None
    return last.tool_calls if last is not None and last.role == "assistant" else ()


def turn_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages after the last one of the user."""
    count = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        count += 1
    return list(messages[len(messages) - count :])
