"""Streams with any part replaced by anything: a completion or one of our own errors, nothing else."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jianmu.agents import AnthropicChatModel, ChatModel, Completion, OpenAIChatModel, RetryPolicy
from jianmu.errors import ChatModelError
from jianmu.messages import Message
from jianmu.testing.provider_server import ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer
from jianmu.tools import tool

from .test_garbage import START, anthropic_calls, block, chunk, end, openai_calls

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
TEXT = {"type": "text_delta", "text": "hi"}
WHOLE: dict[str, list[Any]] = {
    "openai": [
        chunk({"role": "assistant", "content": "hi"}),
        *openai_calls(("a", '{"a": 1}')),
        chunk({}, usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
    ],
    "anthropic": [
        START,
        *block(0, {"type": "text", "text": ""}, TEXT),
        *anthropic_calls(("a", '{"a": 1}'))[1:-2],
        *end("tool_use"),
    ],
}


@tool
def add(a: int) -> int:
    """Add."""
    return a


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


@st.composite
def damaged(draw: st.DrawFn, wire: str) -> list[Any]:
    events = copy.deepcopy(WHOLE[wire])
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(list(places(events))))
        holder: Any = events
        for key in path:
            holder = holder[key]
        if draw(st.booleans()):
            holder[last] = draw(JSON)
        else:
            del holder[last]
        if not events:
            break
    return events or [{}]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_damaged_stream_is_a_completion_or_a_chat_model_error(wire: str) -> None:
    sent: list[Any] = []
    retry = RetryPolicy(attempts=1)
    with ProviderServer(lambda request: ProviderAnswer(raw=tuple(sent))) as server:
        model: ChatModel
        if wire == "openai":
            model = OpenAIChatModel("m", base_url=server.openai_url, api_key=server.api_key, retry=retry)
        else:
            model = AnthropicChatModel(
                "m", base_url=server.anthropic_url, api_key=server.api_key, retry=retry
            )

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        @given(events=damaged(wire))
        def holds(events: list[Any]) -> None:
            sent[:] = events
            with asyncio.Runner() as runner:
                try:
                    answer = runner.run(model.complete([Message(role="user", content="hi")], tools=[add]))
                    assert isinstance(answer, Completion)
                    assert len({call.id for call in answer.message.tool_calls}) == len(
                        answer.message.tool_calls
                    )
                except ChatModelError:
                    pass
                finally:
                    runner.run(model.aclose())  # type: ignore[attr-defined]

        holds()
