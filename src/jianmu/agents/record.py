"""The leaf that remembers for the model."""

from __future__ import annotations

import logging

from jianmu.agents.state import AgentState, turn_messages
from jianmu.agents.turn import Turn
from jianmu.errors import LongTermMemoryError, StorageError
from jianmu.memory.service import MemoryService
from jianmu.messages import Message
from jianmu.runtime import LeafContext, node

__all__ = ["record"]

log = logging.getLogger(__name__)


@node
async def record(ctx: LeafContext, memory: MemoryService | None, turn: Turn) -> None:
    """Store what the user said and what the model answered, once per turn.

    A memory that cannot store does not take the answer from the user: the failure is logged and put on the
    bus as ``memory.failed``.

    Args:
        ctx: The leaf's context.
        memory: Where to; None = nothing is stored.
        turn: The caller's end.
    """
    if memory is None:
        return
    state: AgentState = ctx.state
    said = turn_messages(state.messages)
    asked = state.messages[-len(said) - 1 :][:1]
    spoken = [m for m in [*asked, *said] if m.role in ("user", "assistant") and m.text.strip()]
    try:
        await ctx.once("record", _store, ctx, memory, spoken)
    except (LongTermMemoryError, StorageError) as error:
        log.warning("the turn could not be remembered: %s", type(error).__name__)
        failure = {"operation": "record", "error": type(error).__name__, "message": str(error)}
        turn.report("memory.failed", {"thread_id": ctx.thread_id, **failure})


async def _store(ctx: LeafContext, memory: MemoryService, spoken: list[Message]) -> str:
    for number, message in enumerate(spoken):
        metadata = {"role": message.role, "thread": ctx.thread_id}
        await memory.aadd(message, key=f"{ctx.idempotency_key}/{number}", metadata=metadata)
    return f"{len(spoken)} stored"
