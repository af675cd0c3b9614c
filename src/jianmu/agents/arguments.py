"""What an agent may be made of; a wrong argument is named with the right one."""

from __future__ import annotations

from typing import Literal, get_args

from jianmu.agents.chat_model import ChatModel
from jianmu.errors import ConfigError
from jianmu.memory.checkpoint.base import CheckpointerProtocol
from jianmu.memory.service import MemoryService

__all__ = ["MemoryUse", "check_agent"]

MemoryUse = Literal["tools", "auto", "both"]
"""How an agent uses its memory: the model calls tools; it is done for the model; or both."""


def check_agent(
    *,
    model: object,
    memory: object,
    memory_use: object,
    checkpointer: object,
    limits: dict[str, int | None],
) -> None:
    """Check the arguments of `ReActAgent`.

    Raises:
        ConfigError: One of them cannot be used.
    """
    if isinstance(model, type) or not isinstance(model, ChatModel):
        raise ConfigError(
            f"model is {_kind(model)}: give a chat model, e.g. OpenAIChatModel('gpt-4.1-mini'), or an object"
            " with name, stream() and complete() as jianmu.agents.ChatModel tells"
        )
    if memory is not None and not isinstance(memory, MemoryService):
        raise ConfigError(f"memory is {_kind(memory)}: give MemoryService(memory, ('user',)), or None")
    if memory_use not in get_args(MemoryUse):
        allowed = ", ".join(map(repr, get_args(MemoryUse)))
        raise ConfigError(f"memory_use is {memory_use!r}; it is one of {allowed}")
    if memory is None and memory_use != "tools":
        raise ConfigError(f"memory_use={memory_use!r} needs a memory: pass memory=MemoryService(...)")
    if isinstance(checkpointer, type) or not isinstance(checkpointer, CheckpointerProtocol | None):
        raise ConfigError(
            f"checkpointer is {_kind(checkpointer)}: give a checkpointer, e.g. SqliteCheckpointer('agent.db')"
        )
    for name, number in limits.items():
        if number is not None and number < 1:
            raise ConfigError(f"{name} must be at least 1, not {number}")


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
