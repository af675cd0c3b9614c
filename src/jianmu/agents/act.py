"""The leaf that runs the tools that the model asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from jianmu.agents.approval import call_digest
from jianmu.agents.events import ToolFinished, ToolStarted
from jianmu.agents.state import AgentState, open_calls
from jianmu.agents.tool_calls import needs_approval
from jianmu.agents.turn import Turn
from jianmu.messages import Message, ToolCall
from jianmu.runtime import LeafContext, node
from jianmu.tools import ToolResult, ToolSet

__all__ = ["act", "tool_message"]

_SIDE_BY_SIDE = 8
_Placed: TypeAlias = tuple[int, ToolCall]


@node
async def act(ctx: LeafContext, tools: ToolSet, turn: Turn, parallel: int | None = None) -> None:
    """Run the open calls and put their results into the history, in the order of the calls.

    Each result is saved by itself the moment it is there: a crash repeats only what was still under way, with
    the same idempotency key.

    Args:
        ctx: The leaf's context.
        tools: The agent's tools.
        turn: The caller's end.
        parallel: Calls that run at the same time, whatever they do; 1 = one after the other; None = tools
            that are `read_only` side by side, any other alone, in the order of the calls.
    """
    calls = open_calls(ctx.state.messages)
    if not calls:
        return
    results: list[Message] = []
    try:
        for group in _groups(calls, tools, parallel):
            results += await _side_by_side(ctx, tools, turn, group, parallel or _SIDE_BY_SIDE)
    except ExceptionGroup as unsaved:  # a tool's own failure is a result: here a result could not be saved
        await turn.abort(unsaved.exceptions[0])
    ctx.update({"messages": results})
    if turn.interrupted:
        ctx.update({"stopped": "interrupted"})


def _groups(calls: Sequence[ToolCall], tools: ToolSet, parallel: int | None) -> list[list[_Placed]]:
    """Return the calls, each with its place, in groups that run one after the other."""
    placed = list(enumerate(calls))
    if parallel is not None:
        return [placed]
    groups: list[list[_Placed]] = []
    reading = False
    for index, call in placed:
        reads = call.name in tools and tools[call.name].read_only
        if reads and reading:
            groups[-1].append((index, call))
        else:
            groups.append([(index, call)])
        reading = reads
    return groups


async def _side_by_side(
    ctx: LeafContext, tools: ToolSet, turn: Turn, group: Sequence[_Placed], at_most: int
) -> list[Message]:
    gate = asyncio.Semaphore(at_most)

    async def one(index: int, call: ToolCall) -> Message:
        async with gate:
            return await _answer(ctx, tools, turn, index, call)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one(index, call)) for index, call in group]
    return [task.result() for task in running]


async def _answer(ctx: LeafContext, tools: ToolSet, turn: Turn, index: int, call: ToolCall) -> Message:
    refusal = _refusal(ctx.state, tools, index, call)
    if refusal is not None:
        result = tool_message(call, refusal, is_error=True)
    else:
        result = await ctx.once(f"tool/{index}/{call.id}", _run, ctx, tools, turn, call, returns=Message)
    turn.emit(ToolFinished(call, result))
    return result


def _refusal(state: AgentState, tools: ToolSet, index: int, call: ToolCall) -> str | None:
    if not needs_approval(tools, call):
        return None
    decision = state.decisions.get(call_digest(index, call))
    if decision is None:
        return "Not run: nobody approved this exact call."
    if not decision.approved:
        return f"Not run: a person refused this call. {decision.reason}".strip()
    return None


async def _run(ctx: LeafContext, tools: ToolSet, turn: Turn, call: ToolCall) -> Message:
    if turn.interrupted:
        return tool_message(call, "Interrupted by the user before it began.", is_error=True)
    turn.emit(ToolStarted(call))
    turn.report("tool.started", {"thread_id": ctx.thread_id, "tool": call.name, "call_id": call.id})
    outcome = await turn.unless_interrupted(tools.acall(call.name, call.arguments))
    if outcome is None:
        outcome = ToolResult(
            "Interrupted by the user before it ended.", is_error=True, error_type="Interrupted"
        )
    turn.report(
        "tool.finished",
        {
            "thread_id": ctx.thread_id,
            "tool": call.name,
            "call_id": call.id,
            "is_error": outcome.is_error,
            "error_type": outcome.error_type,
        },
    )
    return tool_message(call, outcome.content, is_error=outcome.is_error)


def tool_message(call: ToolCall, text: str, *, is_error: bool) -> Message:
    """Return the answer to one call."""
    return Message(role="tool", tool_call_id=call.id, name=call.name, content=text, is_error=is_error)
