"""Messages to each provider's form and back."""

import base64
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai import types as gemini
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from jianmu.errors import DecodeError
from jianmu.messages import (
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    from_anthropic_message,
    from_gemini_content,
    from_openai_message,
    to_anthropic_messages,
    to_gemini_contents,
    to_openai_messages,
)
from tests.messages.sdks import accepted_by_all, accepted_by_anthropic, accepted_by_gemini, accepted_by_openai

PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
TALK = [
    Message(role="system", content="Be brief."),
    Message(role="system", content="Answer in English."),
    Message(role="user", content=(TextPart(text="look"), ImagePart(url=PIXEL)), name="Ann Lee"),
    Message(
        role="assistant",
        tool_calls=(
            ToolCall(id="c1", name="look", arguments={"what": "汉字"}),
            ToolCall(id="c2", name="look", arguments='{"what": 2}'),
        ),
    ),
    Message(role="tool", tool_call_id="c1", content="a dot"),
    Message(role="tool", tool_call_id="c2", content="failed", is_error=True),
    Message(role="system", content="Hurry."),
    Message(role="assistant", content="A dot."),
]


def test_a_whole_talk_is_accepted_by_every_sdk() -> None:
    accepted_by_all(TALK)


def test_openai_gets_arguments_as_text_and_names_it_allows() -> None:
    wire = accepted_by_openai(TALK)
    assert wire[3]["content"] is None
    assert [call["function"]["arguments"] for call in wire[3]["tool_calls"]] == [
        '{"what": "汉字"}',
        '{"what": 2}',
    ]
    assert wire[2]["name"] == "Ann_Lee"
    assert wire[2]["content"][1] == {"type": "image_url", "image_url": {"url": PIXEL}}


def test_anthropic_gets_one_system_prompt_and_alternating_turns() -> None:
    system, turns = accepted_by_anthropic(TALK)
    assert system == "Be brief.\n\nAnswer in English."
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert turns[1]["content"][1]["input"] == {"what": 2}
    assert turns[2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": "c2",
        "content": [{"type": "text", "text": "failed"}],
        "is_error": True,
    }
    assert turns[2]["content"][2]["text"] == "<system>\nHurry.\n</system>"


def test_gemini_gets_the_answers_of_one_turn_together() -> None:
    system, contents = accepted_by_gemini(TALK)
    assert system == "Be brief.\n\nAnswer in English."
    responses = [part["function_response"] for part in contents[2]["parts"]]
    assert responses == [
        {"name": "look", "id": "c1", "response": {"output": "a dot"}},
        {"name": "look", "id": "c2", "response": {"error": "failed"}},
    ]


def test_anthropic_ids_are_mended_on_both_sides() -> None:
    call = ToolCall(id="调用:1", name="f")
    again = Message(role="assistant", tool_calls=(call,))
    answer = Message(role="tool", tool_call_id="调用:1", content="ok")
    accepted_by_anthropic([Message(role="user", content="go"), again, answer, again, answer])


def test_anthropic_leaves_out_what_it_refuses() -> None:
    system, turns = to_anthropic_messages(
        [Message(role="assistant", content=" \n"), Message(role="user", content="")]
    )
    assert system == ""
    assert turns == [{"role": "user", "content": [{"type": "text", "text": "[empty message]"}]}]


@pytest.mark.parametrize("convert", [to_anthropic_messages, to_gemini_contents])
def test_a_history_that_begins_with_the_model_gets_a_user_before_it(convert: Any) -> None:
    _, turns = convert([Message(role="assistant", content="hello")])
    assert turns[0]["role"] == "user"
    assert len(turns) == 2


@pytest.mark.parametrize("written", ["not json", "[1]", '{"a": NaN}', "[" * 100_000])
def test_arguments_that_are_no_object_are_kept_as_text(written: str) -> None:
    call = ToolCall(id="c", name="f", arguments=written)
    _, turns = to_anthropic_messages(
        [Message(role="user", content="x"), Message(role="assistant", tool_calls=(call,))]
    )
    assert turns[1]["content"][0]["input"] == {"_text": written}


def test_half_characters_can_be_sent() -> None:
    call = ToolCall(id="c", name="f", arguments='{"a": "\\ud800"}')
    talk = [
        Message(role="user", content="a\ud800b"),
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", tool_call_id="c", content="\udfff"),
    ]
    for wire in (to_openai_messages(talk), *to_anthropic_messages(talk), *to_gemini_contents(talk)):
        str(wire).encode("utf-8")


@given(
    st.text(), st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text(), st.integers())), max_size=3)
)
def test_an_assistant_message_comes_back_from_openai(
    text: str, calls: list[tuple[str, dict[str, int]]]
) -> None:
    made = tuple(ToolCall(id=str(i), name=n, arguments=str(a)) for i, (n, a) in enumerate(calls))
    message = Message(role="assistant", content=text, tool_calls=made)
    assert from_openai_message(to_openai_messages([message])[0]) == message


@pytest.mark.parametrize("cache", range(len(TALK) + 1))
def test_anthropic_is_told_how_much_to_keep_in_its_cache(cache: int) -> None:
    system, turns = to_anthropic_messages(TALK, cache=cache)
    blocks = [block for turn in turns for block in turn["content"]]
    marked = [block for block in blocks if "cache_control" in block]
    assert len(marked) == (cache > 2)
    for block in marked:
        assert block.pop("cache_control") == {"type": "ephemeral"}
    assert (system, turns) == to_anthropic_messages(TALK)


def test_sdk_response_objects_are_read() -> None:
    function = {"name": "f", "arguments": '{"a":1}'}
    openai = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }
    )
    assert from_openai_message(openai) == Message(
        role="assistant", tool_calls=(ToolCall(id="c", name="f", arguments='{"a":1}'),)
    )
    content = gemini.Content.model_validate(
        {"role": "model", "parts": [{"text": "hm"}, {"function_call": {"name": "f", "args": {"a": 1}}}]}
    )
    assert from_gemini_content(content) == Message(
        role="assistant", content="hm", tool_calls=(ToolCall(id="call_0", name="f", arguments={"a": 1}),)
    )


def test_thinking_goes_back_to_anthropic_as_it_came() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    response = AnthropicMessage.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "x",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                thinking,
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
            ],
        }
    )
    message = from_anthropic_message(response)
    assert message.text == "so"
    assert message.tool_calls == (ToolCall(id="c", name="f", arguments={"a": 1}),)
    answer = Message(role="tool", tool_call_id="c", content="1")
    _, turns = accepted_by_anthropic([Message(role="user", content="x"), message, answer])
    assert turns[1]["content"][0] == thinking


def test_a_gemini_signature_goes_back_with_its_call() -> None:
    part = {"function_call": {"name": "f", "args": {}}, "thought_signature": b"\x00sig"}
    message = from_gemini_content({"role": "model", "parts": [{"text": "t", "thought": True}, part]})
    answer = Message(role="tool", tool_call_id="call_0", content="1")
    _, contents = accepted_by_gemini([Message(role="user", content="x"), message, answer])
    assert contents[1]["parts"][0]["thought_signature"] == b"\x00sig"


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (from_openai_message, {"role": "robot"}),
        (from_openai_message, 3),
        (from_openai_message, {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}),
        (from_anthropic_message, {"role": "tool", "content": ""}),
        (from_anthropic_message, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}),
        (from_gemini_content, {"role": "model", "parts": [{"executable_code": {"code": "1"}}]}),
    ],
)
def test_what_no_message_can_hold_is_refused_by_name(read: Any, value: object) -> None:
    with pytest.raises(DecodeError):
        read(value)


@pytest.mark.parametrize("url", [PIXEL, "https://example.org/a.png"])
def test_images_come_back_from_every_provider(url: str) -> None:
    message = Message(role="user", content=(TextPart(text="see"), ImagePart(url=url)))
    assert from_openai_message(to_openai_messages([message])[0]) == message
    assert from_anthropic_message(to_anthropic_messages([message])[1][0]) == message
    assert from_gemini_content(to_gemini_contents([message])[1][0]) == message
