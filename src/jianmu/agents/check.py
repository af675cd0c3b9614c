"""The leaves that decide whether a turn is over, and how it ended."""

from __future__ import annotations

from jianmu.agents.state import AgentState
from jianmu.runtime import LeafContext, node

__all__ = ["answered", "finish", "give_up"]


@node
async def answered(ctx: LeafContext) -> bool:
    """SUCCESS when the turn is over; FAILURE when the model has to see the tools' results first."""
    state: AgentState = ctx.state
    if state.error is not None or state.stopped is not None:
        return True
    last = state.messages[-1]
    return last.role == "assistant" and not last.tool_calls


@node
async def give_up(ctx: LeafContext) -> None:
    """Note that the step limit was reached."""
    ctx.update({"stopped": "step_limit"})


@node
async def finish(ctx: LeafContext) -> bool:
    """SUCCESS unless the model failed."""
    return ctx.state.error is None
