"""Chat models and the agent built on them."""

from __future__ import annotations

from jianmu.agents.act import act
from jianmu.agents.anthropic_model import AnthropicChatModel
from jianmu.agents.approval import Decision, PendingApproval
from jianmu.agents.approve import approve
from jianmu.agents.chat_model import (
    ChatModel,
    Completion,
    Delta,
    StreamRestarted,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jianmu.agents.check import answered, finish, give_up
from jianmu.agents.echo_model import EchoChatModel
from jianmu.agents.events import (
    AgentEvent,
    AgentResult,
    ApprovalNeeded,
    ModelFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jianmu.agents.openai_model import OpenAIChatModel
from jianmu.agents.react import MemoryUse, ReActAgent
from jianmu.agents.record import record
from jianmu.agents.retry import RetryPolicy
from jianmu.agents.state import AgentState
from jianmu.agents.stream import AgentStream
from jianmu.agents.think import think
from jianmu.agents.thread import StoredTurn
from jianmu.agents.turn import Turn

__all__ = [
    "AgentEvent",
    "AgentResult",
    "AgentState",
    "AgentStream",
    "AnthropicChatModel",
    "ApprovalNeeded",
    "ChatModel",
    "Completion",
    "Decision",
    "Delta",
    "EchoChatModel",
    "MemoryUse",
    "ModelFinished",
    "OpenAIChatModel",
    "PendingApproval",
    "ReActAgent",
    "RetryPolicy",
    "StoredTurn",
    "StreamRestarted",
    "TextDelta",
    "ToolCallDelta",
    "ToolFinished",
    "ToolStarted",
    "Turn",
    "TurnFinished",
    "Usage",
    "act",
    "answered",
    "approve",
    "finish",
    "give_up",
    "record",
    "think",
]
