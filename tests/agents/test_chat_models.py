"""Both provider models, through the real SDKs, against a server that speaks their wire formats."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from jianmu.agents import ChatModel, Completion, StreamRestarted, TextDelta, ToolCallDelta, Usage
from jianmu.errors import ChatModelError, ConfigError
from jianmu.messages import Message, ToolCall
from jianmu.messages.wire import arguments_as_object
from jianmu.testing.provider_server import Fault, ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest
from jianmu.tools import Tool
from jianmu.tools.names import legal_name

Serve = Callable[..., ProviderServer]
Connect = Callable[..., ChatModel]
HELLO = [Message(role="system", content="Be brief."), Message(role="user", content="你好")]


class Weather(Tool):
    name = "weather.now"
    description = "The weather in a city."
    input_schema: ClassVar = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }

    def run(self, **arguments: Any) -> str:
        return "sunny"


async def close(model: Any) -> None:
    await model.aclose()


async def parts_of(model: ChatModel, messages: list[Message] = HELLO, **kwargs: Any) -> list[Any]:
    try:
        return [part async for part in model.stream(messages, **kwargs)]
    finally:
        await close(model)


async def test_text_comes_in_pieces_and_then_whole(serve: Serve, connect: Connect) -> None:
    server = serve(ProviderAnswer("你好，世界! Hello 🙂", input_tokens=5, output_tokens=9))
    *deltas, last = await parts_of(connect(server))
    assert len(deltas) > 1
    assert "".join(delta.text for delta in deltas) == "你好，世界! Hello 🙂"
    assert isinstance(last, Completion)
    assert last.message == Message(role="assistant", content="你好，世界! Hello 🙂")
    assert last.usage == Usage(input_tokens=5, output_tokens=9)
    assert last.finish_reason == "stop"
    assert last.model in ("gpt-test", "claude-test")


async def test_complete_returns_the_same_completion(serve: Serve, connect: Connect) -> None:
    server = serve(ProviderAnswer("hi"))
    model = connect(server)
    assert (await model.complete(HELLO)).message.text == "hi"
    await close(model)


async def test_parallel_tool_calls_come_back_under_the_tools_own_names(
    serve: Serve, connect: Connect
) -> None:
    def brain(request: ProviderRequest) -> ProviderAnswer:
        (name,) = request.tool_names
        return ProviderAnswer("Looking.", tool_calls=((name, {"city": "北京"}), (name, {"city": "Paris"})))

    server = serve(brain)
    *deltas, last = await parts_of(connect(server), tools=[Weather()])
    assert [call.name for call in last.message.tool_calls] == ["weather.now", "weather.now"]
    assert len({call.id for call in last.message.tool_calls}) == 2
    assert last.finish_reason == "tool_calls"
    assert {delta.id for delta in deltas if isinstance(delta, ToolCallDelta) and delta.id} == {
        call.id for call in last.message.tool_calls
    }
    assert [arguments_as_object(call) for call in last.message.tool_calls] == [
        {"city": "北京"},
        {"city": "Paris"},
    ]


async def test_a_history_with_tool_results_is_accepted(serve: Serve, connect: Connect) -> None:
    seen: list[ProviderRequest] = []

    def brain(request: ProviderRequest) -> ProviderAnswer:
        seen.append(request)
        return ProviderAnswer("ok")

    history = [
        *HELLO,
        Message(
            role="assistant",
            tool_calls=(
                ToolCall(id="a", name="weather.now", arguments={"city": "x"}),
                ToolCall(id="b", name="gone.tool", arguments='{"q": 1}'),
            ),
        ),
        Message(role="tool", tool_call_id="a", content="sunny"),
        Message(role="tool", tool_call_id="b", content="no such tool", is_error=True),
    ]
    await parts_of(connect(serve(brain)), history, tools=[Weather()])
    assert seen[0].tool_results == [("a", "sunny"), ("b", "no such tool")]
    assert seen[0].tool_names == [legal_name("weather.now")]


async def test_the_idempotency_key_is_a_header_and_stays_the_same_over_retries(
    serve: Serve, connect: Connect
) -> None:
    server = serve(ProviderAnswer("ok"))
    server.faults.extend([Fault(status=500), Fault(status=503)])
    *_, last = await parts_of(connect(server), idempotency_key="run/0/1")
    assert last.message.text == "ok"
    assert [call.key for call in server.calls()] == ["run/0/1"] * 3


async def test_retry_after_is_respected(serve: Serve, connect: Connect, waits: list[float]) -> None:
    server = serve(ProviderAnswer("ok"))
    server.faults.extend([Fault(status=429, headers={"Retry-After": "7"}), Fault(status=529)])
    await parts_of(connect(server))
    assert waits == [7.0, 0.5]


async def test_a_wait_that_is_too_long_is_an_error_at_once(
    serve: Serve, connect: Connect, waits: list[float]
) -> None:
    server = serve(ProviderAnswer("ok"))
    server.faults.append(Fault(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(ChatModelError, match="429") as caught:
        await parts_of(connect(server))
    assert (caught.value.kind, caught.value.status, caught.value.retry_after) == ("rate_limit", 429, 3600)
    assert waits == []


async def test_attempts_are_limited(serve: Serve, connect: Connect) -> None:
    server = serve(ProviderAnswer("ok"))
    server.faults.extend([Fault(status=500)] * 9)
    with pytest.raises(ChatModelError, match="500"):
        await parts_of(connect(server))
    assert len(server.calls()) == 3


@pytest.mark.parametrize("fault", [Fault(cut_after=4), Fault(end_after=4), Fault(cut_after=0)])
async def test_a_cut_stream_starts_again_and_says_so(serve: Serve, connect: Connect, fault: Fault) -> None:
    server = serve(ProviderAnswer("twelve chars and some more"))
    server.faults.append(fault)
    parts = await parts_of(connect(server))
    restarts = [at for at, part in enumerate(parts) if isinstance(part, StreamRestarted)]
    assert len(restarts) == (0 if fault.cut_after == 0 else 1)
    after = parts[restarts[0] + 1 :] if restarts else parts
    text = "".join(part.text for part in after if isinstance(part, TextDelta))
    assert text == "twelve chars and some more" == parts[-1].message.text
    assert len(server.calls()) == 2


async def test_a_bad_request_is_not_tried_again(serve: Serve, connect: Connect) -> None:
    server = serve(ProviderAnswer("ok"))
    server.faults.append(Fault(status=400))
    with pytest.raises(ChatModelError, match="400"):
        await parts_of(connect(server))
    assert len(server.calls()) == 1


async def test_a_server_that_is_not_there_is_a_clear_error(serve: Serve, connect: Connect) -> None:
    with ProviderServer(lambda _request: ProviderAnswer("")) as gone:
        pass
    with pytest.raises(ChatModelError, match="could not be reached") as caught:
        await parts_of(connect(gone))
    assert caught.value.kind == "connection"


async def test_a_key_is_in_no_error_repr_or_log(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret-4242"
    model = connect(serve(ProviderAnswer("ok")), api_key=secret)
    with pytest.raises(ChatModelError, match=r"401.*check the API key") as caught:
        await parts_of(model)
    shown = "".join(traceback.format_exception(caught.value)) + repr(model) + repr(vars(model)) + caplog.text
    assert "very-secret" not in shown


async def test_an_answer_cut_by_the_limit_says_so(serve: Serve, connect: Connect) -> None:
    model = connect(serve(ProviderAnswer("half", finish="max_tokens")))
    if model.name == "gpt-test":
        model = connect(serve(ProviderAnswer("half", finish="length")))
    *_, last = await parts_of(model)
    assert last.finish_reason == "length"


async def test_cancelling_closes_the_request(serve: Serve, connect: Connect) -> None:
    server = serve(ProviderAnswer("x" * 4000), delay=0.01)
    model = connect(server)
    started = asyncio.Event()

    async def read() -> None:
        async for _ in model.stream(HELLO):
            started.set()

    task = asyncio.create_task(read())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await close(model)
    async with asyncio.timeout(5):
        while server.calls()[0].outcome != "broken":
            await asyncio.sleep(0.01)


def test_one_model_serves_several_event_loops(serve: Serve, connect: Connect) -> None:
    model = connect(serve(ProviderAnswer("ok")))
    for _ in range(2):
        assert asyncio.run(parts_of(model))[-1].message.text == "ok"


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from jianmu.agents import AnthropicChatModel, OpenAIChatModel

    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        OpenAIChatModel("gpt-test")
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        AnthropicChatModel("claude-test")
