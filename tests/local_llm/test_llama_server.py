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

from jianmu.agents import Completion, OpenAIChatModel, ReActAgent, TextDelta
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


async def test_text_streams_and_usage_is_counted(url: str) -> None:
    model = model_at(url, max_tokens=24)
    parts = [part async for part in model.stream(ask("Name three trees."))]
    await model.aclose()
    deltas = [part for part in parts if isinstance(part, TextDelta)]
    last = parts[-1]
    assert isinstance(last, Completion)
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas) == last.message.text
    assert last.usage.input_tokens > 5
    assert 3 < last.usage.output_tokens <= 24
    print(f"{len(deltas)} deltas, usage {last.usage}, {last.finish_reason}: {last.message.text!r}")


async def test_a_long_answer_ends_at_the_limit_and_says_so(url: str) -> None:
    model = model_at(url, max_tokens=5)
    completion = await model.complete(ask("Tell me a very long story."))
    await model.aclose()
    assert completion.finish_reason == "length"
    assert completion.usage.output_tokens == 5


async def test_cancelling_frees_the_server(url: str) -> None:
    model = model_at(url, max_tokens=2000)
    stream = model.stream(ask("Count from one to one thousand in words."))
    first = await anext(stream)
    await stream.aclose()
    assert isinstance(first, TextDelta)
    async with asyncio.timeout(30):  # a server that went on with 2,000 tokens would still be busy
        short = await model_at(url, max_tokens=3).complete(ask("Hi"))
    await model.aclose()
    assert short.usage.output_tokens == 3


async def test_the_agents_request_with_tools_is_accepted(url: str) -> None:
    @tool
    def weather(city: str) -> str:
        """Tell the weather in a city."""
        return "sunny"

    agent = ReActAgent(model_at(url, max_tokens=16), tools=[weather], max_steps=2)
    result = await agent.run("What is the weather in Paris?")
    assert result.usage.input_tokens > 0


def test_a_killed_turn_goes_on_and_a_saved_one_is_not_asked_again(url: str, tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "worker.py"), url, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "delta\n"
        first.kill()
    second = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    *deltas, last = second.stdout.splitlines()
    assert len(deltas) > 3
    assert last.startswith("finished ")
    print(f"after the kill: {len(deltas)} deltas, {last[:80]}")
