"""What an agent says of its prompt is what Anthropic's cache is told, and what it reads is counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from jianmu.agents import AgentResult, AnthropicChatModel, OpenAIChatModel, ReActAgent, Usage
from jianmu.events import RuntimeEvent, RuntimeEventBus
from jianmu.memory import MemoryService, SimpleStore
from jianmu.messages import Message
from jianmu.testing.provider_server import ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest
from jianmu.tools import tool

Serve = Callable[..., ProviderServer]


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is fine"


def brain(request: ProviderRequest) -> ProviderAnswer:
    if len(request.tool_results) < 2 * len(request.user_texts):
        return ProviderAnswer(tool_calls=(("look", {"what": f"thing {len(request.tool_results)}"}),))
    return ProviderAnswer("All fine.")


def marks(body: dict[str, Any]) -> list[str]:
    """Return where the marks are: ``tools``, ``system`` or ``messages/turn/block``."""
    found = [name for name in ("tools", "system") if any("cache_control" in b for b in body.get(name, ()))]
    for turn, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [f"messages/{turn}/{at}" for at, block in enumerate(blocks) if "cache_control" in block]
    return found


async def talk(agent: ReActAgent, *texts: str) -> list[AgentResult]:
    results = [await agent.run(text) for text in texts]
    await agent.aclose()
    return results


async def test_each_request_reads_what_the_one_before_wrote(serve: Serve) -> None:
    server, bus, seen = serve(brain), RuntimeEventBus(), list[RuntimeEvent]()
    bus.subscribe(seen.append)
    model = AnthropicChatModel("claude-test", base_url=server.anthropic_url, api_key=server.api_key)
    first, second = await talk(ReActAgent(model, tools=[look], event_bus=bus), "Check.", "Again.")
    bus.drain()
    figures = [event.payload for event in seen if event.type == "model.finished"]
    assert [marks(call.body) for call in server.calls()] == [
        ["system", f"messages/{2 * turn}/0"] for turn in range(6)
    ]
    assert figures[0]["cached_tokens"] == 0
    for before, after in pairwise(figures):
        assert after["cached_tokens"] == before["cached_tokens"] + before["cache_write_tokens"]
        assert after["cache_write_tokens"] > 0
        assert after["input_tokens"] == 11 + after["cached_tokens"] + after["cache_write_tokens"]
    assert first.usage.cache_write_tokens == sum(each["cache_write_tokens"] for each in figures[:3])
    assert second.usage.cached_tokens == sum(each["cached_tokens"] for each in figures[3:])


async def test_what_is_recalled_for_one_turn_is_behind_the_mark(serve: Serve, tmp_path: Path) -> None:
    server = serve(ProviderAnswer("Noted."))
    memory = MemoryService(SimpleStore(tmp_path / "m.json"), ("ada",))
    memory.add("Ada drinks green tea.", key="k")
    model = AnthropicChatModel("claude-test", base_url=server.anthropic_url, api_key=server.api_key)
    await talk(ReActAgent(model, memory=memory, memory_use="auto"), "Which tea?", "And which milk with tea?")
    for call in server.calls():
        *_, place = marks(call.body)
        turn, block = map(int, place.split("/")[1:])
        blocks = call.body["messages"][turn]["content"]
        assert "green tea" not in str(blocks[: block + 1])
        assert "green tea" in str(blocks[block + 1 :])
    first, second = server.calls()
    assert marks(first.body)[-1] == "messages/0/0"
    assert marks(second.body)[-1] == "messages/2/0"


async def test_tools_are_marked_where_there_is_no_system_prompt(serve: Serve) -> None:
    server = serve(ProviderAnswer("Hi."))
    model = AnthropicChatModel("claude-test", base_url=server.anthropic_url, api_key=server.api_key)
    await talk(ReActAgent(model, tools=[look], system_prompt=""), "Hi")
    assert marks(server.calls()[0].body) == ["tools", "messages/0/0"]


async def test_it_can_be_switched_off_and_a_lone_request_marks_nothing(serve: Serve) -> None:
    server = serve(ProviderAnswer("Hi."))
    options: dict[str, Any] = {"base_url": server.anthropic_url, "api_key": server.api_key}
    (result,) = await talk(ReActAgent(AnthropicChatModel("c", prompt_cache=False, **options)), "Hi")
    lone = AnthropicChatModel("c", **options)
    await lone.complete([Message(role="user", content="Hi")])
    await lone.aclose()
    assert [marks(call.body) for call in server.calls()] == [[], []]
    assert result.usage == Usage(input_tokens=11, output_tokens=7)


async def test_openai_gets_the_same_request_as_ever(serve: Serve) -> None:
    server = serve(ProviderAnswer("Hi."))
    model = OpenAIChatModel("gpt-test", base_url=server.openai_url, api_key=server.api_key)
    await talk(ReActAgent(model), "Hi")
    assert "cache_control" not in str(server.calls()[0].body)
