"""The whole agent over HTTP, through the real SDKs, with every fault that a provider has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jianmu.agents import ChatModel, ReActAgent, StreamRestarted, TurnFinished
from jianmu.errors import ChatModelError
from jianmu.memory import FileCheckpointer, MemoryService, SimpleStore
from jianmu.testing.provider_server import Fault, ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest

Serve = Callable[..., ProviderServer]
Connect = Callable[..., ChatModel]


def brain(request: ProviderRequest) -> ProviderAnswer:
    """Stores what is told, searches what is asked, answers with the last result."""
    said = request.user_texts[-1]
    turn = len(request.user_texts)
    if len(request.tool_results) >= turn:
        return ProviderAnswer(f"Result: {request.tool_results[-1][1]}", input_tokens=100, output_tokens=10)
    if said.endswith("?"):
        return ProviderAnswer(tool_calls=(("memory_search", {"query": said, "k": None}),))
    return ProviderAnswer("Noted.", tool_calls=(("memory_add", {"content": said}),))


async def run(agent: ReActAgent, text: str, **kwargs: object) -> str:
    try:
        return (await agent.run(text, **kwargs)).text  # type: ignore[arg-type]
    finally:
        await agent.aclose()


async def test_an_agent_remembers_over_threads(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    server = serve(brain)
    memory = MemoryService(SimpleStore(tmp_path / "m.json"), ("ada",))
    agent = ReActAgent(connect(server), memory=memory, checkpointer=FileCheckpointer(tmp_path / "t"))
    assert "Stored" in await run(agent, "小明喜欢喝龙井茶", thread_id="monday")
    assert "龙井茶" in await run(agent, "小明喜欢喝什么茶?", thread_id="tuesday")
    assert {call.outcome for call in server.calls()} == {"done"}


async def test_faults_on_the_way_change_nothing_but_time(
    serve: Serve, connect: Connect, tmp_path: Path, waits: list[float]
) -> None:
    server = serve(brain)
    memory = MemoryService(SimpleStore(tmp_path / "m.json"), ("ada",))
    agent = ReActAgent(connect(server), memory=memory)
    server.faults.extend(
        [
            Fault(status=429, headers={"Retry-After": "2"}),
            Fault(cut_after=3),
            Fault(),
            Fault(status=500),
            Fault(end_after=4),
        ]
    )
    assert "Stored" in await run(agent, "I like tea")
    assert len(memory.search("tea", limit=10)) == 1
    keys = [call.key for call in server.calls()]
    assert len(keys) == 6
    assert len(set(keys[:3])) == 1
    assert len(set(keys[3:])) == 1
    assert waits[0] == 2.0


async def test_a_restarted_stream_is_told_to_the_reader(serve: Serve, connect: Connect) -> None:
    server = serve(ProviderAnswer("a somewhat longer answer"))
    server.faults.append(Fault(cut_after=5))
    agent = ReActAgent(connect(server))
    events = [event async for event in agent.stream("hi")]
    await agent.aclose()
    assert any(isinstance(event, StreamRestarted) for event in events)
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].result.text == "a somewhat longer answer"


async def test_a_provider_that_stays_down_is_raised_and_later_the_turn_goes_on(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = serve(ProviderAnswer("at last"))
    server.faults.extend([Fault(status=503)] * 3)
    agent = ReActAgent(connect(server), checkpointer=FileCheckpointer(tmp_path))
    with pytest.raises(ChatModelError, match="503"):
        await run(agent, "hello")
    assert await run(agent, "hello") == "at last"
    users = [m for m in server.calls()[-1].body["messages"] if m["role"] == "user"]
    assert len(users) == 1
