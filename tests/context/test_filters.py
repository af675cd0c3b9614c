"""Filters: from messages to messages."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from jianmu import StateManager
from jianmu.errors import ConfigError, ContextError
from jianmu.memory.context import (
    ContextBuilder,
    Filter,
    FunctionProvider,
    Redact,
    StateHistoryProvider,
    StubToolOutput,
    Summarise,
    SystemPromptProvider,
    by_role,
    dedupe,
    drop_empty,
    window,
)
from jianmu.messages import ImagePart, Message, TextPart, ToolCall
from tests.cases.test_trimming_and_counting import assistant, result, user
from tests.context.histories import histories
from tests.messages.sdks import accepted_by_all


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def filtered(history: Sequence[Message], *filters: Any) -> list[str]:
    return texts(ContextBuilder([StateHistoryProvider()], filters).build(history).messages)


TALK = [
    Message(role="system", content="kind"),
    user("one"),
    assistant("c1", content="let me see"),
    result("c1"),
    Message(role="assistant", content="done"),
    user("two"),
]


def test_roles_are_kept_with_the_system_prompt_and_the_newest_question() -> None:
    assert filtered(TALK, by_role("assistant")) == ["kind", "done", "two"]
    assert filtered(TALK, by_role("user")) == ["kind", "one", "two"]
    assert filtered(TALK, by_role("user", "assistant", "tool")) == texts(TALK)


def test_a_filter_that_drops_results_drops_their_calls() -> None:
    built = ContextBuilder([StateHistoryProvider()], [lambda ms: [m for m in ms if m.role != "tool"]]).build(
        TALK
    )
    assert texts(built.messages) == ["kind", "one", "done", "two"]
    assert [change.reason for change in built.report.section("history").changes] == [
        "filter <lambda>",
        "a call whose result a filter removed",
    ]


def test_a_window_moves_in_blocks() -> None:
    talk = [user(str(n)) for n in range(100)]
    sizes = [len(filtered(talk[:end], window(8))) for end in range(1, 100)]
    assert max(sizes) == 9
    assert min(sizes[8:]) == 8
    starts = {filtered(talk[:end], window(8))[0] for end in range(50, 60)}
    assert len(starts) <= 6
    with pytest.raises(ConfigError):
        window(-1)


def test_the_newest_question_survives_any_filter() -> None:
    assert filtered(TALK, lambda messages: []) == ["two"]
    assert filtered(TALK, lambda messages: messages[:2]) == ["kind", "one", "two"]
    assert filtered([*TALK, assistant("c2"), result("c2", "late")], lambda ms: ms[-2:]) == ["two", "", "late"]


def test_a_message_that_comes_again_is_dropped() -> None:
    talk = [
        user("a"),
        user("a"),
        Message(role="user", content="old", id="x"),
        user("b"),
        Message(role="user", content="new", id="x"),
    ]
    assert filtered(talk, dedupe) == ["a", "b", "new"]
    assert filtered([assistant("c1"), result("c1", "r"), assistant("c2"), result("c2", "r")], dedupe) == [
        "",
        "r",
        "",
        "r",
    ]


def test_empty_messages_are_dropped_but_calls_results_and_images_are_not() -> None:
    image = Message(role="user", content=(ImagePart(url="https://example.org/a.png"),))
    talk = [user(" \n"), image, assistant("c1"), result("c1", ""), user("ask")]
    built = ContextBuilder([StateHistoryProvider()], [drop_empty]).build(talk)
    assert list(built.messages) == talk[1:]


SECRETS = {
    "email": "write to ada.l+x@mail.example.co.uk now",
    "key": "use sk-proj-abcdEFGH1234567890abcd now",
}


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-" + "api03-" + "a1B2" * 8,
        "AKIAIOSFODNN7EXAMPLE",
        "AIza" + "a" * 35,
        "ghp_" + "a" * 36,
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_keys_are_hidden(secret: str) -> None:
    assert filtered([user(f"key: {secret} end")], Redact("key")) == ["key: [redacted:key] end"]


def test_mails_are_hidden_and_ordinary_text_is_not() -> None:
    assert filtered([user(SECRETS["email"])], Redact()) == ["write to [redacted:email] now"]
    plain = "the sk-learn package, sk-something-that-is-long-but-no-key, user@host, a.b@c, task-12345678"
    assert filtered([user(plain)], Redact()) == [plain]


@pytest.mark.parametrize(
    "unit", ["a", "a@", "@1.", "-eyJaaaaaaaa", "sk-a", "-----BEGIN PRIVATE KEY-----", "xox", "."]
)
def test_redaction_takes_linear_time(unit: str) -> None:
    began = time.process_time()
    list(Redact()([user(unit * (200_000 // len(unit)))]))
    assert time.process_time() - began < 3


def test_redaction_reaches_arguments_parts_and_every_section() -> None:
    call = ToolCall(id="c", name="mail", arguments={"to": ["a@b.org"], "body": {"n": 1}})
    text_call = ToolCall(id="d", name="mail", arguments='{"to": "a@b.org"}')
    talk = [
        Message(role="user", content=(TextPart(text="a@b.org"), ImagePart(url="https://x.org/a@b.org.png"))),
        Message(role="assistant", tool_calls=(call, text_call)),
        result("c", "sent to a@b.org"),
        result("d", "too"),
    ]
    providers = [
        SystemPromptProvider("I am root@b.org"),
        StateHistoryProvider(),
        FunctionProvider(lambda r: "x@y.org", name="f"),
    ]
    messages = ContextBuilder(providers, [Redact("email")]).build(talk).messages
    assert messages[0].text == "I am [redacted:email]"
    assert messages[1].text == "[redacted:email]"
    assert messages[2].tool_calls[0].arguments == {"to": ["[redacted:email]"], "body": {"n": 1}}
    assert messages[2].tool_calls[1].arguments == '{"to": "[redacted:email]"}'
    assert messages[3].text == "sent to [redacted:email]"
    assert messages[-1].text == "[redacted:email]"
    assert messages[4] is talk[3], "what has nothing to hide is the same object"


def test_own_patterns_are_named_and_wrong_ones_refused() -> None:
    assert filtered([user("order 12345")], Redact("email", patterns={"order": r"\d{5}"})) == [
        "order [redacted:order]"
    ]
    with pytest.raises(ConfigError, match="passport"):
        Redact("passport")
    with pytest.raises(ConfigError, match=r"\("):
        Redact(patterns={"bad": "("})


def test_old_tool_output_becomes_a_stub_in_blocks() -> None:
    def talk(count: int) -> list[Message]:
        made = [user("go")]
        for n in range(count):
            made += [assistant(f"c{n}"), result(f"c{n}", f"{n}" * 300)]
        return made

    stubbed = [sum("left out" in text for text in filtered(talk(n), StubToolOutput(3))) for n in range(12)]
    assert stubbed == [0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6]
    assert (
        filtered([user("go"), assistant("c"), result("c", "short"), *talk(9)[1:]], StubToolOutput(3))[2]
        == "short"
    )
    with pytest.raises(ConfigError):
        StubToolOutput(-1)


class State(BaseModel):
    messages: list[Message] = []
    summary: dict[str, Any] | None = None


class Summaries:
    """Counts what it is asked to summarise."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, list[str]]] = []

    def __call__(self, before: str | None, messages: Sequence[Message]) -> str:
        self.asked.append((before, texts(messages)))
        return f"{before or ''}+{len(messages)}"


def test_a_summary_is_paid_for_once_and_kept_in_the_state() -> None:
    make = Summaries()
    builder = ContextBuilder([StateHistoryProvider()], [Summarise(make, over=200, keep=80)])
    manager = StateManager(State)
    manager.initialize()
    said: list[Message] = [Message(role="system", content="kind")]
    for n in range(40):
        said.append(user(f"question {n} about something"))
        manager.update({"messages": said})
        built = builder.build(manager)
        assert built.messages[-1] is not None
        assert built.messages[-1].text == said[-1].text
        again = builder.build(manager)
        assert again.messages == built.messages
        assert not again.updates
        said.append(Message(role="assistant", content=f"answer {n}"))
    summarised = [text for _, messages in make.asked for text in messages]
    assert len(make.asked) > 2
    assert summarised == texts(said[1 : 1 + len(summarised)]), "each message once, in order"
    assert make.asked[1][0] == f"+{len(make.asked[0][1])}"
    assert built.messages[0].text == "kind"
    assert built.messages[1].text.startswith("Summary of the conversation so far:\n")
    accepted_by_all(built.messages)
    assert builder.build(built.messages).messages == built.messages


def test_a_plain_state_gets_the_summary_as_an_update() -> None:
    make = Summaries()
    builder = ContextBuilder([StateHistoryProvider()], [Summarise(make, over=100)])
    state = State(messages=[user(f"question {n} about something") for n in range(20)])
    built = builder.build(state)
    assert set(built.updates) == {"summary"}
    went_on = state.model_copy(update=dict(built.updates))
    assert builder.build(went_on).messages == built.messages
    assert len(make.asked) == 1
    rewritten = went_on.model_copy(update={"messages": [user("other"), *went_on.messages[1:]]})
    assert builder.build(rewritten).messages == built.messages, "only what the summary covers last is checked"
    last = built.updates["summary"]["count"] - 1
    edited = [*went_on.messages[:last], user("edited"), *went_on.messages[last + 1 :]]
    builder.build(went_on.model_copy(update={"messages": edited}))
    assert make.asked[-1][0] is None, "a summary of something else is not used"
    assert "edited" in make.asked[-1][1]
    cut = went_on.model_copy(update={"messages": went_on.messages[:3]})
    assert texts(builder.build(cut).messages) == texts(went_on.messages[:3])


def test_a_summary_never_parts_a_call_from_its_results() -> None:
    long = [user("go")]
    for n in range(30):
        long += [assistant(f"c{n}", f"d{n}"), result(f"c{n}", "found something"), result(f"d{n}", "and more")]
    builder = ContextBuilder([StateHistoryProvider()], [Summarise(Summaries(), over=300)])
    accepted_by_all(builder.build([user("before"), *long[1:], user("now")]).messages)
    assert texts(builder.build(long).messages)[0] == "go", "the newest question is never summarised"


async def test_a_summary_may_be_asynchronous() -> None:
    async def summarise(before: str | None, messages: Sequence[Message]) -> str:
        return f"{len(messages)} messages"

    builder = ContextBuilder([StateHistoryProvider()], [Summarise(summarise, over=100)])
    history = [user(f"question {n} about something") for n in range(20)]
    assert "messages" in (await builder.abuild(history)).messages[0].text
    with pytest.raises(ContextError, match="abuild"):
        builder.build(history)
    with pytest.raises(ConfigError):
        Summarise(summarise, over=10, keep=10)


FILTERS: list[Filter] = [
    dedupe,
    drop_empty,
    window(3),
    by_role("user"),
    StubToolOutput(0, longer_than=0),
    Redact(),
]


@given(histories(damaged=True), st.sampled_from(FILTERS))
def test_a_filter_changes_nothing_the_second_time(history: list[Message], item: Filter) -> None:
    once = list(item(history))
    assert list(item(once)) == once
