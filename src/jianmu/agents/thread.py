"""What a store knows about an agent's thread before a run begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jianmu.agents.state import AgentState
from jianmu.memory.checkpoint.base import CheckpointerProtocol
from jianmu.messages import Message
from jianmu.state import StateManager

__all__ = ["StoredTurn", "load_turn"]

ROOT = "0"


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """The newest turn of a thread.

    Attributes:
        state: The typed state.
        unfinished: Whether the turn was cut off or waits for a decision.
    """

    state: AgentState
    unfinished: bool

    @property
    def user_message(self) -> Message | None:
        """What the user said last."""
        return next((message for message in reversed(self.state.messages) if message.role == "user"), None)

    def is_about(self, text: str, message_id: str | None = None) -> bool:
        """Whether the turn is the user's saying `text`; an id decides where there is one."""
        message = self.user_message
        if message is None:
            return False
        return message.id == message_id if message_id is not None else message.text == text


async def load_turn(
    checkpointer: CheckpointerProtocol, thread_id: str, manager: Callable[[], StateManager[Any]]
) -> StoredTurn | None:
    """Return the newest turn of a thread, or None when there is none.

    Args:
        checkpointer: The store.
        thread_id: The thread.
        manager: Makes the state manager that reads the state.
    """
    envelope = await asyncio.to_thread(checkpointer.get_checkpoint, thread_id)
    if envelope is None:
        return None
    states = manager()
    states.initialize(envelope["state"])
    tree = envelope.get("tree") or {}
    return StoredTurn(states.get(), tree.get(ROOT) == "RUNNING")
