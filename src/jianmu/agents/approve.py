"""The leaf that asks a person before a call runs."""

from __future__ import annotations

import asyncio

from jianmu.agents.approval import Decision, call_digest
from jianmu.agents.state import open_calls
from jianmu.agents.tool_calls import needs_approval
from jianmu.messages import ToolCall
from jianmu.messages.wire import arguments_as_object
from jianmu.runtime import LeafContext, node
from jianmu.tools import ToolSet

__all__ = ["approve"]


@node
async def approve(ctx: LeafContext, tools: ToolSet) -> None:
    """Suspend until every open call that needs it has a decision.

    The question's key and the stored decision carry the digest of the exact call, so that a decision counts
    for no other call, also when the stored state was changed in between.

    Args:
        ctx: The leaf's context.
        tools: The agent's tools; those that `require_approval` are asked for.
    """
    waiting = {
        call_digest(index, call): call
        for index, call in enumerate(open_calls(ctx.state.messages))
        if needs_approval(tools, call)
    }
    if not waiting:
        return
    answers = await asyncio.gather(*(_ask(ctx, digest, call) for digest, call in waiting.items()))
    ctx.update({"decisions": {**ctx.state.decisions, **dict(zip(waiting, answers, strict=True))}})


async def _ask(ctx: LeafContext, digest: str, call: ToolCall) -> Decision:
    payload = {
        "kind": "approval",
        "tool": call.name,
        "arguments": arguments_as_object(call),
        "call_id": call.id,
    }
    return Decision.of(await ctx.ask(payload, key=digest))
