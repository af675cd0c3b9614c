"""The demo's two behaviour trees: one learns from a conversation, the other answers from memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from operator import add
from typing import Annotated, Any

from py_trees.behaviour import Behaviour
from py_trees.common import ParallelPolicy
from py_trees.composites import Parallel, Selector, Sequence
from py_trees.decorators import Repeat
from pydantic import BaseModel

from jianmu.demo.conversation import Fact, Turn, facts_of
from jianmu.demo.effects import EffectFile
from jianmu.runtime import LeafContext, node
from jianmu.tools import Tool, current_idempotency_key

__all__ = ["Answers", "Learning", "answering_tree", "learning_tree", "walk"]


class Learning(BaseModel):
    """Where the learner is and what it has done."""

    turn: int = 0
    stored: int = 0
    noted: int = 0


class Answers(BaseModel):
    """What memory said to each question, in order."""

    texts: Annotated[list[str], add] = []


def learning_tree(turns: list[Turn], memory_add: Tool, notebook: EffectFile, pace: float) -> Behaviour:
    """Return the tree that reads every turn and keeps what it states.

    Args:
        turns: The conversation.
        memory_add: The memory tool that stores.
        notebook: Where each stored fact is noted, the effect on the world outside.
        pace: Seconds to read a turn.
    """

    @node
    async def read(ctx: LeafContext) -> dict[str, Any]:
        await asyncio.sleep(pace)
        number = ctx.state.turn + 1
        ctx.emit("demo.turn", {"turn": number})
        return {"turn": number}

    @node
    async def nothing_new(ctx: LeafContext) -> bool:
        return not facts_of(turns[ctx.state.turn - 1])

    @node
    async def store(ctx: LeafContext) -> dict[str, Any]:
        facts = facts_of(turns[ctx.state.turn - 1])
        for fact in facts:
            await ctx.once(f"store {fact.key}", _store, memory_add, fact)
        return {"stored": ctx.state.stored + len(facts)}

    @node
    async def note(ctx: LeafContext) -> dict[str, Any]:
        facts = facts_of(turns[ctx.state.turn - 1])
        for fact in facts:
            await ctx.once(f"note {fact.key}", _note, notebook, fact, pace)
        return {"noted": ctx.state.noted + len(facts)}

    effects = [store(name="store it in memory"), note(name="note it down")]
    keep_it = Parallel("keep what is new", ParallelPolicy.SuccessOnAll(), effects)
    anything_new = Selector("anything new?", memory=True, children=[nothing_new(name="nothing new"), keep_it])
    one_turn = Sequence("one turn", memory=True, children=[read(name="read the turn"), anything_new])
    return Repeat("every turn", child=one_turn, num_success=len(turns))


def answering_tree(questions: list[str], memory_search: Tool) -> Behaviour:
    """Return the tree that asks memory each question."""

    @node
    async def search(ctx: LeafContext, question: str) -> dict[str, Any]:
        found = await memory_search.acall({"query": question, "k": 1})
        return {"texts": [found.content]}

    children = [search(question, name=question) for question in questions]
    return Sequence("answer from memory", memory=True, children=children)


def walk(root: Behaviour, path: str = "0") -> Iterator[tuple[str, Behaviour]]:
    """Give every node with its index path, parents first."""
    yield path, root
    for index, child in enumerate(root.children):
        yield from walk(child, f"{path}/{index}")


async def _store(memory_add: Tool, fact: Fact) -> str:
    result = await memory_add.acall(
        {"content": fact.content, "key": fact.key, "metadata": {"time": fact.day, "turn": fact.turn}}
    )
    if result.is_error:
        raise RuntimeError(result.content)
    return result.content


async def _note(notebook: EffectFile, fact: Fact, pace: float) -> bool:
    key = current_idempotency_key.get()
    assert key is not None
    is_new = await asyncio.to_thread(notebook.append, key, {"turn": fact.turn, "fact": fact.content})
    await asyncio.sleep(pace)  # the way back of an answer: who dies now does not know that it is done
    return is_new
