"""What servers that speak OpenAI's format do differently from OpenAI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jianmu.agents import Completion, OpenAIChatModel, RetryPolicy
from jianmu.errors import ChatModelError
from jianmu.messages import Message
from jianmu.testing import ProviderAnswer, ProviderServer

Serve = Callable[..., ProviderServer]


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


async def answer(serve: Serve, *raw: dict[str, Any], **options: Any) -> Completion:
    server = serve(ProviderAnswer(raw=raw))
    model = OpenAIChatModel(
        "m",
        base_url=server.openai_url,
        api_key=server.api_key,
        retry=RetryPolicy(attempts=1),
        new_id=lambda: "made-up",
        **options,
    )
    try:
        return await model.complete([Message(role="user", content="hi")])
    finally:
        await model.aclose()


async def test_calls_without_index_or_id_are_calls_of_their_own(serve: Serve) -> None:
    calls = [{"index": None, "function": {"name": "f", "arguments": f'{{"n": {n}}}'}} for n in (1, 2)]
    completion = await answer(serve, chunk({"tool_calls": calls}), chunk({}, "stop"))
    assert [(c.id, c.arguments) for c in completion.message.tool_calls] == [
        ("made-up", '{"n": 1}'),
        ("made-up_1", '{"n": 2}'),
    ]
    assert completion.finish_reason == "tool_calls"


async def test_usage_beside_the_last_choice_is_read(serve: Serve) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    completion = await answer(serve, chunk({"content": "a"}), chunk({}, "stop", usage=usage))
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (3, 4)


async def test_no_usage_is_zero_and_no_error(serve: Serve) -> None:
    completion = await answer(serve, chunk({"content": "a"}, "stop"))
    assert completion.usage.output_tokens == 0


async def test_reasoning_beside_the_content_is_kept_apart(serve: Serve) -> None:
    completion = await answer(
        serve,
        chunk({"reasoning_content": "hm, "}),
        chunk({"reasoning_content": "yes"}),
        chunk({"content": "a"}, "stop"),
    )
    assert completion.message.text == "a"
    assert completion.message.metadata == {"reasoning": "hm, yes"}


async def test_a_refusal_is_the_text(serve: Serve) -> None:
    completion = await answer(serve, chunk({"refusal": "No."}, "stop"))
    assert completion.message.text == "No."


async def test_an_unknown_finish_reason_is_other(serve: Serve) -> None:
    assert (await answer(serve, chunk({"content": "a"}, "weird"))).finish_reason == "other"


async def test_an_empty_delta_and_empty_choices_are_no_error(serve: Serve) -> None:
    empty = {**chunk({}), "choices": []}
    completion = await answer(serve, empty, chunk(None), chunk({"content": "a"}, "stop"), empty)
    assert completion.message.text == "a"


async def test_an_error_inside_the_stream_is_an_error(serve: Serve) -> None:
    with pytest.raises(ChatModelError, match="overloaded"):
        await answer(
            serve, chunk({"content": "a"}), {"error": {"message": "overloaded", "type": "server_error"}}
        )


async def test_options_go_with_every_request(serve: Serve) -> None:
    server = serve(ProviderAnswer("ok"))
    options = {"temperature": 0, "max_tokens": 5}
    model = OpenAIChatModel("m", base_url=server.openai_url, api_key=server.api_key, options=options)
    await model.complete([Message(role="user", content="hi")])
    await model.aclose()
    assert {name: server.calls()[0].body[name] for name in options} == options
