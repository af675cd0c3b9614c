"""Chat models and the agent built on them."""

from __future__ import annotations

from jianmu.agents.anthropic_model import AnthropicChatModel
from jianmu.agents.chat_model import (
    ChatModel,
    Completion,
    Delta,
    StreamRestarted,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jianmu.agents.openai_model import OpenAIChatModel
from jianmu.agents.retry import RetryPolicy

__all__ = [
    "AnthropicChatModel",
    "ChatModel",
    "Completion",
    "Delta",
    "OpenAIChatModel",
    "RetryPolicy",
    "StreamRestarted",
    "TextDelta",
    "ToolCallDelta",
    "Usage",
]
