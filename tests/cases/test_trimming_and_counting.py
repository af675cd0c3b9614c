"""T7 and T8: what peers' users reported of trimmed histories and token counts."""

import pytest

from jianmu.errors import BudgetError
from jianmu.memory.context import ContextBuilder, StateHistoryProvider, TokenBudget
from jianmu.messages import Message, ToolCall
from tests.context.histories import assert_pairs_are_whole, is_subsequence
from tests.messages.sdks import accepted_by_all


def assistant(*calls: str, content: str = "") -> Message:
    made = tuple(ToolCall(id=call, name="look", arguments={"at": call}) for call in calls)
    return Message(role="assistant", content=content, tool_calls=made)


def result(call: str, content: str = "seen") -> Message:
    return Message(role="tool", tool_call_id=call, content=content)


def user(content: str) -> Message:
    return Message(role="user", content=content)


SYSTEM = Message(role="system", content="Be kind.")
HISTORY = [
    SYSTEM,
    user("one"),
    assistant("c1", "c2"),
    result("c1"),
    result("c2"),
    user("two"),
    assistant("c3"),
    result("c3"),
    user("three"),
]


def test_31_a_cut_never_parts_a_call_from_its_results() -> None:
    whole = TokenBudget(0).count(HISTORY)
    least = TokenBudget(0).count([SYSTEM, HISTORY[-1]])
    for tokens in range(whole + 1):
        budget = TokenBudget(tokens)
        builder = ContextBuilder([StateHistoryProvider()], budget=budget)
        if tokens < least:
            with pytest.raises(BudgetError, match=str(least)):
                builder.build(HISTORY)
            continue
        messages = builder.build(HISTORY).messages
        assert is_subsequence(messages, HISTORY)
        assert_pairs_are_whole(messages)
        assert messages[0] is SYSTEM
        assert messages[-1] is HISTORY[-1]
        assert budget.count(messages) <= tokens
        assert builder.build(messages).messages == messages
    assert list(messages) == HISTORY


def test_33_a_call_that_was_never_answered_is_answered_as_interrupted() -> None:
    killed = [user("go"), assistant("c1", "c2"), result("c1", "paid")]
    builder = ContextBuilder([StateHistoryProvider()])
    messages = builder.build(killed).messages
    assert messages[2] is killed[2]
    assert messages[3].tool_call_id == "c2"
    assert messages[3].is_error
    assert "interrupted" in messages[3].text
    accepted_by_all(messages)
    went_on = builder.build([*killed, user("and now?")]).messages
    assert [m.role for m in went_on] == ["user", "assistant", "tool", "tool", "user"]
    accepted_by_all(went_on)


def test_33_a_result_without_its_call_is_dropped() -> None:
    built = ContextBuilder([StateHistoryProvider()]).build([user("go"), result("c9"), user("on")])
    assert [m.text for m in built.messages] == ["go", "on"]
    assert [change.kind for change in built.report.section("history").changes] == ["dropped"]


def test_35_arguments_results_and_schemas_are_counted() -> None:
    call = ToolCall(id="c", name="f", arguments={"text": "some words " * 727})
    said = [
        Message(role="assistant", tool_calls=(call,)),
        result("c", '{"rows": [' + '"a b",' * 1333 + "0]}"),
    ]
    assert TokenBudget(0).count(said) >= 3_000


def test_35_tool_schemas_are_taken_from_the_budget() -> None:
    tools = [
        {
            "name": f"tool_{n}",
            "description": "does a thing " * 60,
            "input_schema": {"type": "object", "title": "x" * 200},
        }
        for n in range(20)
    ]
    history = [user(f"message {n} " * 20) for n in range(200)]
    budget = TokenBudget(8_000)
    builder = ContextBuilder([StateHistoryProvider()], budget=budget)
    without, with_tools = builder.build(history), builder.build(history, tools=tools)
    assert with_tools.report.tools >= 20 * 180
    assert len(with_tools.messages) < len(without.messages)
    assert budget.count(with_tools.messages, tools) == with_tools.report.total <= 8_000
    assert builder.build(with_tools.messages, tools=tools).messages == with_tools.messages
