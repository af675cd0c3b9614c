"""Servers that send nonsense: a clear error or a result for the model, never a thread that is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import AgentResult, AnthropicChatModel, ChatModel, OpenAIChatModel, ReActAgent, RetryPolicy
from jianmu.errors import ChatModelError
from jianmu.memory import FileCheckpointer
from jianmu.testing.provider_server import ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest
from jianmu.tools import tool

Serve = Callable[..., ProviderServer]
Events = list[Any]

RAN: list[int] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@tool
def add(a: int = 1) -> str:
    """Add."""
    RAN.append(a)
    return f"added {a}"


def chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def openai_calls(*calls: tuple[str, str], finish: str = "tool_calls") -> Events:
    pieces = [
        {"index": n, "id": call_id, "type": "function", "function": {"name": "add", "arguments": arguments}}
        for n, (call_id, arguments) in enumerate(calls)
    ]
    return [chunk({"tool_calls": pieces}), chunk({}, finish)]


START = {
    "type": "message_start",
    "message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}


def block(index: int, start: dict[str, Any], delta: dict[str, Any] | None = None) -> Events:
    events: Events = [{"type": "content_block_start", "index": index, "content_block": start}]
    if delta is not None:
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
    return [*events, {"type": "content_block_stop", "index": index}]


def end(reason: str) -> Events:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def anthropic_calls(*calls: tuple[str, str], finish: str = "tool_use") -> Events:
    events: Events = [START]
    for n, (call_id, arguments) in enumerate(calls):
        use = {"type": "tool_use", "id": call_id, "name": "add", "input": {}}
        events += block(n, use, {"type": "input_json_delta", "partial_json": arguments})
    return [*events, *end(finish)]


async def no_sleep(seconds: float) -> None:
    pass


async def after(serve: Serve, folder: Path, wire: str, events: Events) -> tuple[AgentResult, ProviderServer]:
    """Run a turn whose first answer is `events`; the second is "ok"."""
    answers = 0

    def brain(request: ProviderRequest) -> ProviderAnswer:
        nonlocal answers
        answers += 1
        return ProviderAnswer(raw=tuple(events)) if answers == 1 else ProviderAnswer("ok")

    server = serve(brain)
    model: ChatModel
    retry = RetryPolicy(attempts=2, sleep=no_sleep)
    if wire == "openai":
        model = OpenAIChatModel("m", base_url=server.openai_url, api_key=server.api_key, retry=retry)
    else:
        model = AnthropicChatModel("m", base_url=server.anthropic_url, api_key=server.api_key, retry=retry)
    agent = ReActAgent(model, tools=[add], checkpointer=FileCheckpointer(folder))
    try:
        async with asyncio.timeout(20):
            return await agent.run("go"), server
    finally:
        await agent.aclose()


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("calls", "ran", "says"),
    [
        ([("a", "")], [1], "added 1"),
        ([("a", "{}"), ("a", '{"a": 2}')], [1, 2], "added 2"),
        ([("", "{}"), ("", '{"a": 2}')], [1, 2], "added 2"),
        ([("a", '{"a": 10')], [], "not valid JSON"),
        ([("a", "}{")], [], "not valid JSON"),
        ([("a", "[1]")], [], "must be a JSON object"),
        ([("a", "[" * 2_000)], [], "not valid JSON"),
        ([("a", '{"a": NaN}')], [], "must be an integer"),
        ([("a", '{"a": "\ud800"}')], [], "must be an integer"),
    ],
)
async def test_odd_calls_are_answered_and_the_thread_goes_on(
    serve: Serve, tmp_path: Path, wire: str, calls: list[tuple[str, str]], ran: list[int], says: str
) -> None:
    events = openai_calls(*calls) if wire == "openai" else anthropic_calls(*calls)
    result, server = await after(serve, tmp_path, wire, events)
    assert result.text == "ok"
    assert ran == RAN
    assert says in [message.text for message in result.messages if message.role == "tool"][-1]
    assert {call.outcome for call in server.calls()} == {"done"}


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_a_call_cut_off_by_the_token_limit_does_not_run_with_half_a_number(
    serve: Serve, tmp_path: Path, wire: str
) -> None:
    cut = ("a", '{"a": 100')
    events = (
        openai_calls(cut, finish="length") if wire == "openai" else anthropic_calls(cut, finish="max_tokens")
    )
    result, _ = await after(serve, tmp_path, wire, events)
    assert RAN == []
    assert result.text == "ok"


OPENAI_NONSENSE: dict[str, Events] = {
    "a delta that is text": [chunk("abc"), chunk({}, "stop")],
    "text that is a number": [chunk({"content": 5}), chunk({}, "stop")],
    "calls that are an object": [chunk({"tool_calls": {"a": 1}}), chunk({}, "stop")],
    "usage in words": [chunk({"content": "a"}, "stop", usage={"prompt_tokens": 1, "completion_tokens": "x"})],
    "a list": [[1, 2]],
    "a model that is a number": [chunk({"content": "a"}, "stop") | {"model": 7}],
}
ANTHROPIC_NONSENSE: dict[str, Events] = {
    "no message": [{**START, "message": None}],
    "a delta of no block": [
        START,
        {"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "x"}},
        *end("end_turn"),
    ],
    "an unknown block": [START, *block(0, {"type": "hologram"}), *end("end_turn")],
}


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        *(pytest.param("openai", events, id=f"openai: {name}") for name, events in OPENAI_NONSENSE.items()),
        *(pytest.param("anthropic", ev, id=f"anthropic: {name}") for name, ev in ANTHROPIC_NONSENSE.items()),
    ],
)
async def test_nonsense_is_one_clear_error_and_the_same_call_tries_again(
    serve: Serve, tmp_path: Path, wire: str, events: Events
) -> None:
    with pytest.raises(ChatModelError, match=r"makes no sense .*check base_url") as caught:
        await after(serve, tmp_path, wire, events)
    assert caught.value.kind == "stream"
    result, server = await after(serve, tmp_path, wire, [START] if wire == "anthropic" else [chunk({})])
    assert result.text == "ok"
    assert len(server.calls()) == 2


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        ("openai", [{"error": {"message": "busy", "code": 503}}]),
        ("anthropic", [{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}]),
        ("anthropic", [{"type": "message_stop"}]),
        ("anthropic", [START, {"type": "ping"}]),
    ],
)
async def test_an_answer_that_breaks_off_is_tried_again(
    serve: Serve, tmp_path: Path, wire: str, events: Events
) -> None:
    result, server = await after(serve, tmp_path, wire, events)
    assert result.text == "ok"
    assert len(server.calls()) == 2


async def test_an_error_event_that_would_come_again_is_not_tried_again(serve: Serve, tmp_path: Path) -> None:
    error = {"type": "invalid_request_error", "message": "no such thing"}
    with pytest.raises(ChatModelError, match="no such thing") as caught:
        await after(serve, tmp_path, "anthropic", [{"type": "error", "error": error}])
    assert caught.value.kind == "invalid_request"


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("text", ["", " \n", "a\ud800b", "a\x00b"])
async def test_odd_words_of_a_user_are_sent_and_saved(
    serve: Serve, tmp_path: Path, wire: str, text: str
) -> None:
    server = serve(ProviderAnswer("ok"))
    model: Any = (
        OpenAIChatModel("m", base_url=server.openai_url, api_key=server.api_key)
        if wire == "openai"
        else AnthropicChatModel("m", base_url=server.anthropic_url, api_key=server.api_key)
    )
    agent = ReActAgent(model, checkpointer=FileCheckpointer(tmp_path))
    assert (await agent.run(text)).text == "ok"
    await agent.aclose()
    again = ReActAgent(model, checkpointer=FileCheckpointer(tmp_path))
    assert [message.text for message in await again.history()] == [text, "ok"]
