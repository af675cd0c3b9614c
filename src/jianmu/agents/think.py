"""The leaf that asks the model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from jianmu.agents.chat_model import ChatModel, Completion, StreamRestarted, TextDelta, Usage
from jianmu.agents.events import ModelFinished
from jianmu.agents.turn import Turn
from jianmu.memory.context import BuiltContext
from jianmu.messages import Message
from jianmu.runtime import LeafContext, node
from jianmu.tools import Tool

__all__ = ["INTERRUPTED", "think"]

INTERRUPTED = "[interrupted]"


@node
async def think(ctx: LeafContext, model: ChatModel, tools: Sequence[Tool], turn: Turn) -> bool:
    """Build the prompt, ask the model once, and put its message into the history.

    A model that fails ends the turn: the error goes into the state and to the caller, and the next turn
    starts with the same history. A completion that cannot be saved leaves the turn where it is: the same call
    asks again, with the same key.

    Args:
        ctx: The leaf's context.
        model: Who is asked.
        tools: What it may call.
        turn: The caller's end.
    """
    try:
        built = await ctx.build_context(tools=tools)
        if built.updates:
            ctx.update(built.updates)
    except Exception as error:  # noqa: BLE001 - what stops the prompt ends this turn and is raised to the caller
        return _failed(ctx, turn, error)
    try:
        completion = await ctx.once("completion", _ask, ctx, model, built, tools, turn, returns=Completion)
    except _ModelFailed as failed:
        return _failed(ctx, turn, failed.error)
    except Exception as error:  # noqa: BLE001 - the answer could not be saved; raised to the caller
        await turn.abort(error)
    message = completion.message
    turn.emit(ModelFinished(message, completion.usage, completion.finish_reason, completion.model))
    if message.metadata.get("interrupted"):
        ctx.update({"stopped": "interrupted"})
    ctx.update({"messages": [message], "usage": ctx.state.usage + completion.usage})
    return True


class _ModelFailed(Exception):
    """Tells the model's error from the store's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


def _failed(ctx: LeafContext, turn: Turn, error: Exception) -> bool:
    turn.failure = error
    ctx.update({"error": f"{type(error).__name__}: {error}"})
    return True


async def _ask(
    ctx: LeafContext, model: ChatModel, built: BuiltContext, tools: Sequence[Tool], turn: Turn
) -> Completion:
    text: list[str] = []
    turn.report("model.started", {"thread_id": ctx.thread_id, "model": model.name})
    reading = _read(model, built, tools, ctx.idempotency_key, turn, text)
    try:
        completion = await turn.unless_interrupted(reading)
    except Exception as error:
        raise _ModelFailed(error) from error
    if completion is None:
        content = f"{''.join(text)} {INTERRUPTED}".strip()
        cut = Message(role="assistant", content=content, metadata={"interrupted": True})
        completion = Completion(message=cut, finish_reason="other", model=model.name)
    turn.report("model.finished", _figures(ctx, completion))
    return completion


async def _read(
    model: ChatModel,
    built: BuiltContext,
    tools: Sequence[Tool],
    key: str,
    turn: Turn,
    text: list[str],
) -> Completion:
    completion: Completion | None = None
    stream: Any = model.stream(built.messages, tools=tools, idempotency_key=key, stable=built.stable)
    async with aclosing(stream) as parts:
        async for part in parts:
            if isinstance(part, Completion):
                completion = part
                continue
            if isinstance(part, TextDelta):
                text.append(part.text)
            elif isinstance(part, StreamRestarted):
                text.clear()
            turn.emit(part)
    if completion is None:
        raise ValueError(f"the chat model {model.name!r} ended its stream without a Completion")
    return completion


def _figures(ctx: LeafContext, completion: Completion) -> dict[str, Any]:
    usage: Usage = completion.usage
    return {
        "thread_id": ctx.thread_id,
        "model": completion.model,
        "finish_reason": completion.finish_reason,
        **usage.model_dump(),
    }
