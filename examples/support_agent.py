"""A support agent that may look up orders by itself, but asks a person before it refunds one.

    python examples/support_agent.py            a scripted model, no key needed
    OPENAI_API_KEY=... python examples/support_agent.py gpt-4.1-mini

Stop it at the question and start it again: it asks the same question, and the refund runs once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from jianmu.agents import AgentResult, ChatModel, OpenAIChatModel, PendingApproval, ReActAgent
from jianmu.memory import FileCheckpointer
from jianmu.messages import ToolCall
from jianmu.testing.scripted_model import Reply, ScriptedChatModel, ScriptedRequest
from jianmu.tools import Injected, current_idempotency_key, tool


@dataclass
class Shop:
    """What the tools work on; given to each run, seen by no model."""

    orders: dict[str, float] = field(default_factory=lambda: {"A-17": 42.0})
    refunds: dict[str, float] = field(default_factory=dict)


@tool
def find_order(order: str, deps: Annotated[Shop, Injected]) -> str:
    """Tell what an order cost.

    Args:
        order: The order's number, e.g. A-17.
    """
    return f"Order {order} cost {deps.orders[order]:.2f} euros."


@tool(requires_approval=True)
def refund(order: str, amount: float, deps: Annotated[Shop, Injected]) -> str:
    """Pay an order back.

    Args:
        order: The order's number.
        amount: In euros.
    """
    key = current_idempotency_key.get() or ""
    deps.refunds[key] = amount  # a real payment service takes the key too, and pays once
    return f"{amount:.2f} euros of order {order} were paid back."


def rule(request: ScriptedRequest) -> Reply:
    """Stand in for a model: look the order up, refund it, report."""
    results = [message.text for message in request.messages if message.role == "tool"]
    if not results:
        return ToolCall(id="look", name="find_order", arguments={"order": "A-17"})
    if len(results) == 1:
        return ToolCall(id="pay", name="refund", arguments={"order": "A-17", "amount": 42.0})
    return f"All done: {results[-1]}"


async def serve(
    model: ChatModel, shop: Shop, decide: Callable[[PendingApproval], bool], folder: Path
) -> AgentResult:
    """Bring one request to its end, asking `decide` about each call that needs a person."""
    agent = ReActAgent(
        model,
        system_prompt="You help customers of a small shop.",
        tools=[find_order, refund],
        checkpointer=FileCheckpointer(folder),
    )
    request = "My order A-17 arrived broken. I want my money back."
    result = await agent.run(request, thread_id="customer-7", deps=shop)
    while result.pending:
        answers = {pending.id: decide(pending) for pending in result.pending}
        result = await agent.run(request, thread_id="customer-7", answers=answers, deps=shop)
    await agent.aclose()
    return result


def ask_a_person(pending: PendingApproval) -> bool:
    """Ask on the terminal."""
    return input(f"{pending.tool} {dict(pending.arguments)}? [y/N] ").strip().lower() == "y"


if __name__ == "__main__":
    chosen = OpenAIChatModel(sys.argv[1]) if len(sys.argv) > 1 else ScriptedChatModel(rule)
    print(asyncio.run(serve(chosen, Shop(), ask_a_person, Path(".outputs/support"))).text)
