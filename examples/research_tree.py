"""A long research as a behaviour tree: questions looked into side by side, then a report.

    python examples/research_tree.py            run it, kill it whenever you like, run it again
    python examples/research_tree.py --die 3    kill itself at the third finding

Each finding costs something (here: a line in a file) and is paid for once, however often the process dies.
"""

from __future__ import annotations

import asyncio
import operator
import os
import sys
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from jianmu import Parallel, ReactiveRunner, Sequence, StateManager, node
from jianmu.memory import FileCheckpointer
from jianmu.runtime import LeafContext, ParallelPolicy

QUESTIONS = ("What is a behaviour tree?", "What is a checkpoint?", "What is a lease?", "What is a journal?")
FOLDER = Path(".outputs/research")
PAID = FOLDER / "paid.txt"


class Research(BaseModel):
    """What is known so far."""

    topic: str = ""
    questions: list[str] = []
    findings: Annotated[dict[str, str], operator.or_] = {}
    report: str = ""


@node
async def plan(ctx: LeafContext) -> dict[str, object]:
    """Decide what to look into."""
    return {"questions": [f"{question} ({ctx.state.topic})" for question in QUESTIONS]}


@node
async def look_into(ctx: LeafContext, number: int) -> dict[str, object]:
    """Look into one question; the costly part is inside `once`."""
    question = ctx.state.questions[number]
    finding = await ctx.once("finding", search, question, ctx.idempotency_key)
    return {"findings": {question: finding}}


async def search(question: str, key: str) -> str:
    """Pay for an answer; stands in for a model or a search service."""
    await asyncio.sleep(0.01)
    with PAID.open("a", encoding="utf-8") as file:
        file.write(f"{key}\t{question}\n")
    return f"what is known about: {question}"


@node
async def die_at(ctx: LeafContext, count: int) -> None:
    """Die by SIGKILL once `count` findings are paid for; the next life goes on."""
    paid = len(PAID.read_text("utf-8").splitlines())
    marker = FOLDER / "died"
    if count and paid >= count and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), 9)


@node
async def write_report(ctx: LeafContext) -> dict[str, object]:
    """Put the findings together."""
    return {"report": "\n".join(f"- {answer}" for answer in ctx.state.findings.values())}


def tree(die: int) -> Sequence:
    """Plan, look into two pairs of questions, report."""

    def pair(first: int, second: int) -> Parallel:
        leaves = [look_into(number, name=f"question {number}") for number in (first, second)]
        return Parallel(f"questions {first} and {second}", ParallelPolicy.SuccessOnAll(), leaves)

    steps = [plan(), pair(0, 1), die_at(die), pair(2, 3), die_at(die), write_report()]
    return Sequence("research", memory=True, children=steps)


async def main(die: int = 0) -> str:
    """Run the research to its end, from wherever it was."""
    runner = ReactiveRunner(tree(die), StateManager(Research))
    checkpointer = FileCheckpointer(FOLDER / "threads")
    result = await runner.run({"topic": "agents"}, checkpointer=checkpointer, thread_id="agents")
    return str(result.state.report)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(asyncio.run(main(int(sys.argv[2]) if sys.argv[1:2] == ["--die"] else 0)))
