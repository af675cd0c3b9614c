"""A build costs what is new: counts and pairs are kept from the build before."""

import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from jianmu.errors import BudgetError
from jianmu.memory.context import ContextBuilder, EstimateCounter, StateHistoryProvider, TokenBudget
from jianmu.memory.context.pairs import Pairing
from jianmu.messages import Message, ToolCall
from tests.context.histories import histories


def conversation(count: int) -> list[Message]:
    rng = random.Random(7)
    made = [Message(role="system", content="Be kind.")]
    while len(made) < count:
        n = len(made)
        made.append(Message(role="user", content="word " * rng.randint(1, 40)))
        made.append(
            Message(role="assistant", tool_calls=(ToolCall(id=f"c{n}", name="look", arguments={"n": n}),))
        )
        made.append(Message(role="tool", tool_call_id=f"c{n}", content="found " * rng.randint(1, 40)))
        made.append(Message(role="assistant", content="answer " * rng.randint(1, 40)))
    return made


def test_twenty_thousand_messages_take_at_most_20_ms_after_the_first_build() -> None:
    history = conversation(20_000)
    builder = ContextBuilder.for_react("Be kind.", budget=TokenBudget(8_000, counter=EstimateCounter()))
    builder.build(history)
    took = []
    for n in range(15):
        history = [
            *history,
            Message(role="assistant", content="yes"),
            Message(role="user", content=f"and {n}?"),
        ]
        began = time.process_time()
        built = builder.build(history)
        took.append(time.process_time() - began)
        assert 4_000 < built.report.total <= 8_000
    # The best of many, in the process's own time: other work on the machine can only make a build slower.
    assert min(took) <= 0.020


class Counting:
    """Remembers what it was asked to count."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        self.texts.append(text)
        return len(text)


def test_a_second_build_counts_only_what_is_new() -> None:
    counter = Counting()
    history = conversation(400)
    builder = ContextBuilder.for_react("Be kind.", budget=TokenBudget(3_000, counter=counter))
    builder.build(history)
    counter.texts.clear()
    builder.build(history)
    assert counter.texts == []
    builder.build([*history, Message(role="user", content="new")])
    assert counter.texts == ["new"]


@settings(deadline=None, max_examples=100)
@given(history=histories(max_turns=5, damaged=True), budget=st.none() | st.integers(10, 300), data=st.data())
def test_what_was_built_before_changes_nothing(
    history: list[Message], budget: int | None, data: st.DataObject
) -> None:
    """A builder that goes back and forth in a conversation builds what a new one does."""
    counter = EstimateCounter()

    def limit() -> TokenBudget | None:
        return None if budget is None else TokenBudget(budget, counter=counter)

    def result(builder: ContextBuilder, messages: list[Message], thread: str | None) -> object:
        try:
            built = builder.build(messages, thread_id=thread)
        except BudgetError as error:
            return str(error)
        return built.messages, built.report

    used = ContextBuilder([StateHistoryProvider()], budget=limit())
    for _ in range(data.draw(st.integers(1, 6))):
        end = data.draw(st.integers(0, len(history)))
        other = data.draw(st.integers(end, len(history)))
        messages = [*history[:end], *history[other:]]
        fresh = ContextBuilder([StateHistoryProvider()], budget=limit())
        thread = data.draw(st.sampled_from(["a", "b"]))
        assert result(used, messages, thread) == result(fresh, messages, thread)


@settings(deadline=None, max_examples=200)
@given(history=histories(max_turns=5, damaged=True), data=st.data())
def test_a_pairing_taken_up_again_is_the_pairing_made_anew(
    history: list[Message], data: st.DataObject
) -> None:
    used = Pairing(lambda message: 1)
    for _ in range(data.draw(st.integers(2, 6))):
        end = data.draw(st.integers(0, len(history)))
        messages = [*history[:end], *history[data.draw(st.integers(end, len(history))) :]]
        assert used.of(messages) == Pairing(lambda message: 1).of(messages)
