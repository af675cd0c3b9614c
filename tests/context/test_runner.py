"""The builder inside a run."""

import operator
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel

from jianmu import ReactiveRunner, StateManager, node
from jianmu.memory import InMemoryCheckpointer
from jianmu.memory.context import ContextBuilder, FunctionProvider, StateHistoryProvider, Summarise
from jianmu.messages import Message


class Chat(BaseModel):
    messages: Annotated[list[Message], operator.add] = []
    summary: dict[str, Any] | None = None
    seen: list[str] = []


async def test_a_leaf_gets_the_committed_state_the_thread_and_its_arguments() -> None:
    def note(request: Any) -> str:
        return f"{request.thread_id} {request.values['mood']}"

    @node
    async def look(ctx: Any) -> dict[str, Any]:
        ctx.update({"messages": [Message(role="user", content="not committed")]})
        built = await ctx.build_context(tools=[{"name": "f"}], mood="calm")
        return {"seen": [m.text for m in built.messages] + [str(len(built.tools))]}

    builder = ContextBuilder([StateHistoryProvider(), note])
    runner = ReactiveRunner(look(), StateManager(Chat), context=builder)
    said = {"messages": [Message(role="user", content="hi")]}
    result = await runner.run(said, checkpointer=InMemoryCheckpointer(), thread_id="ada")
    assert result.state.seen == ["hi", "ada calm", "1"]


async def test_a_summary_paid_for_in_a_leaf_is_kept_in_the_state() -> None:
    asked = []

    async def summarise(before: str | None, messages: Sequence[Message]) -> str:
        asked.append(len(messages))
        return "they talked"

    async def weather(request: Any) -> str:
        return "It rains."

    @node
    async def look(ctx: Any) -> dict[str, Any]:
        built = await ctx.build_context()
        again = await ctx.build_context()
        assert again.messages == built.messages
        return {"seen": [m.text for m in built.messages]}

    providers = [StateHistoryProvider(), FunctionProvider(weather)]
    builder = ContextBuilder(providers, [Summarise(summarise, over=100, keep=20)])
    runner = ReactiveRunner(look(), StateManager(Chat), context=builder)
    said = [Message(role="user", content=f"question {n} about something") for n in range(20)]
    result = await runner.run({"messages": said}, checkpointer=InMemoryCheckpointer())
    assert result.state.seen[0] == "Summary of the conversation so far:\nthey talked"
    assert result.state.seen[-2:] == ["question 19 about something", "It rains."]
    assert len(asked) == 1
    assert result.state.summary is not None
    assert result.state.summary["text"] == "they talked"
