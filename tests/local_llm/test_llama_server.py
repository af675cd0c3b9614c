"""The OpenAI path against a real llama.cpp server: the wire, not the wit (`make local-llm`)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="runs by `make local-llm`")

from jianmu.agents import Completion, OpenAIChatModel, ReActAgent, TextDelta, TurnFinished
from jianmu.messages import Message
from jianmu.tools import tool

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, str(HERE / "llama_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("http"):
                yield line.strip()
                break
        server.kill()


def ask(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


def model_at(url: str, **options: Any) -> OpenAIChatModel:
    return OpenAIChatModel("smollm2", base_url=f"{url}/v1", options={"temperature": 0, **options})


async def test_streaming_gives_the_answer_piece_by_piece(url: str) -> None:
    model = model_at(url, max_tokens=24)
    parts = [part async for part in model.stream(ask("Name three trees."))]
    await model.aclose()
    deltas = [part for part in parts if isinstance(part, TextDelta)]
    last = parts[-1]
    assert isinstance(last, Completion)
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas) == last.message.text
    print(f"{len(deltas)} deltas, {last.finish_reason}: {last.message.text!r}")


async def test_usage_is_what_the_server_counted(url: str) -> None:
    model = model_at(url, max_tokens=24)
    short = await model.complete(ask("Name three trees."))
    longer = await model.complete(ask("Name three trees. " * 10))
    await model.aclose()
    assert 5 < short.usage.input_tokens < longer.usage.input_tokens
    assert 3 < short.usage.output_tokens <= 24
    print(f"short: {short.usage}; longer: {longer.usage}")


async def test_a_long_answer_ends_at_the_limit_and_says_so(url: str) -> None:
    model = model_at(url, max_tokens=5)
    completion = await model.complete(ask("Tell me a very long story."))
    await model.aclose()
    assert completion.finish_reason == "length"
    assert completion.usage.output_tokens == 5


async def test_cancel_frees_the_server(url: str) -> None:
    model = model_at(url, max_tokens=2000)
    stream = model.stream(ask("Count from one to one thousand in words."))
    first = await anext(stream)
    await stream.aclose()
    assert isinstance(first, TextDelta)
    async with asyncio.timeout(30):  # a server that went on with 2,000 tokens would still be busy
        short = await model_at(url, max_tokens=3).complete(ask("Hi"))
    await model.aclose()
    assert short.usage.output_tokens == 3


async def test_cancel_of_a_turn_leaves_a_thread_that_resumes(url: str) -> None:
    agent = ReActAgent(model_at(url, max_tokens=40))
    outcomes, deltas = [], 0
    async with agent.stream("Count from one to one hundred in words.") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                agent.cancel()
            elif isinstance(event, TurnFinished):
                outcomes.append(event.result.outcome)
    async with agent.stream() as events:
        async for event in events:
            if isinstance(event, TextDelta):
                deltas += 1
            elif isinstance(event, TurnFinished):
                outcomes.append(event.result.outcome)
    await agent.aclose()
    assert outcomes == ["cancelled", "answered"]
    assert deltas > 3
    assert [message.role for message in await agent.history()] == ["user", "assistant"]


async def test_the_agents_request_with_tools_is_accepted(url: str) -> None:
    @tool
    def weather(city: str) -> str:
        """Tell the weather in a city."""
        return "sunny"

    agent = ReActAgent(model_at(url, max_tokens=16), tools=[weather], max_steps=2)
    result = await agent.run("What is the weather in Paris?")
    assert result.usage.input_tokens > 0


def test_kill_9_in_mid_answer_then_resume_then_no_third_request(url: str, tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "worker.py"), url, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "delta\n"
        first.kill()
    assert first.returncode == -9
    second = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    *deltas, last = second.stdout.splitlines()
    assert len(deltas) > 3
    assert last.startswith("finished ")
    third = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert third.stdout.splitlines() == [last]
    print(f"after the kill: {len(deltas)} deltas, {last[:80]}; once more: 0 deltas, the same answer")
