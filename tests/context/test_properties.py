"""What every prompt holds to, whatever the history and the budget."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jianmu.errors import BudgetError
from jianmu.memory.context import (
    BuiltContext,
    ContextBuilder,
    EstimateCounter,
    ExactCounter,
    Filter,
    KnowledgeProvider,
    Redact,
    StateHistoryProvider,
    StubToolOutput,
    SystemPromptProvider,
    TokenBudget,
    TokenCounter,
    ToolsDescProvider,
    by_role,
    dedupe,
    drop_empty,
    window,
)
from jianmu.messages import Message
from tests.context.histories import assert_pairs_are_whole, histories, is_subsequence, newest_user
from tests.messages.sdks import accepted_by_all

COUNTERS: list[TokenCounter] = [ExactCounter(), EstimateCounter()]
TOOLS = [
    {
        "name": "look_up",
        "description": "Looks up a word.\nSlow.",
        "input_schema": {"type": "object", "properties": {}},
    },
    {
        "type": "function",
        "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}},
    },
]
FILTERS = st.lists(
    st.sampled_from(
        [
            by_role("user", "assistant"),
            by_role("assistant", "tool"),
            window(0),
            window(5),
            dedupe,
            drop_empty,
            Redact(),
            StubToolOutput(1, longer_than=5),
        ]
    ),
    max_size=3,
)
SLOW = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Library:
    """Finds the same passages for every question."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.passages = passages

    def retrieve(self, query: str, *, limit: int) -> Sequence[str]:
        return self.passages[:limit]


def builder_of(
    budget: TokenBudget | None, passages: Sequence[str], filters: Sequence[Filter]
) -> ContextBuilder:
    providers = [
        SystemPromptProvider("You are a gardener. 你是园丁。"),
        ToolsDescProvider(),
        StateHistoryProvider(),
        KnowledgeProvider(Library(passages)),
    ]
    return ContextBuilder(providers, filters, budget, tools=TOOLS)


def budgets(whole: int) -> st.SearchStrategy[int]:
    return st.integers(0, whole + 20)


def build(builder: ContextBuilder, history: Sequence[Message]) -> BuiltContext | None:
    try:
        return builder.build(history)
    except BudgetError as error:
        assert builder.budget is not None
        if str(builder.budget.available) not in str(error):
            raise
        return None


@SLOW
@given(
    history=histories(damaged=True),
    passages=st.lists(st.text(max_size=60), max_size=4),
    filters=FILTERS,
    counter=st.sampled_from(COUNTERS),
    data=st.data(),
)
def test_every_prompt_fits_is_whole_and_builds_itself_again(
    history: list[Message],
    passages: list[str],
    filters: list[Filter],
    counter: TokenCounter,
    data: st.DataObject,
) -> None:
    whole = builder_of(None, passages, filters).build(history).report.total
    budget = TokenBudget(data.draw(budgets(whole)), data.draw(st.sampled_from([0, 7])), counter=counter)
    builder = builder_of(budget, passages, filters)
    built = build(builder, history)
    if built is None:
        return
    messages = built.messages
    assert built.report.total == budget.count(messages, TOOLS)
    assert built.report.total <= budget.available
    assert sum(section.tokens for section in built.report.sections) == budget.counter.messages(messages)
    assert_pairs_are_whole(messages)
    assert messages[0].text == "You are a gardener. 你是园丁。"
    asked = newest_user(history)
    if asked is not None:
        newest = newest_user(messages[: built.stable])
        assert newest is not None
        assert newest.content == asked.content or any(isinstance(item, Redact) for item in filters)
    accepted_by_all(messages)
    again = builder.build(messages)
    assert again.messages == messages
    assert again.report.total == built.report.total
    assert builder.build(history).messages == messages


def unshortened(messages: Sequence[Message], history: Sequence[Message]) -> list[Message]:
    """Put newest results that were made to fit back to what they were."""
    whole = {m.tool_call_id: m for m in history if m.role == "tool"}
    return [whole[m.tool_call_id] if m.metadata.get("jianmu.context") == "shortened" else m for m in messages]


@SLOW
@given(history=histories(), data=st.data())
def test_a_sound_history_is_only_ever_shortened(history: list[Message], data: st.DataObject) -> None:
    whole = TokenBudget(0).count(history)
    builder = ContextBuilder([StateHistoryProvider()], budget=data.draw(budgets(whole)))
    built = build(builder, history)
    if built is not None:
        assert is_subsequence(unshortened(built.messages, history), history)
        assert newest_user(built.messages) is newest_user(history)
        if built.report.available is not None and whole <= built.report.available:
            assert list(built.messages) == history


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(max_turns=3, damaged=True), passages=st.lists(st.text(max_size=20), max_size=2))
def test_every_budget_from_nothing_to_the_whole(history: list[Message], passages: list[str]) -> None:
    counter = COUNTERS[0]
    whole = builder_of(TokenBudget(10**6, counter=counter), passages, ()).build(history).report
    fits_from = None
    outcomes = set()
    # Images cost so much that nothing changes for long stretches.
    for tokens in range(0, whole.total + 2, 1 + whole.total // 400):
        budget = TokenBudget(tokens, counter=counter)
        builder = builder_of(budget, passages, ())
        built = build(builder, history)
        if built is None:
            assert fits_from is None, "what fits into less fits into more"
            continue
        fits_from = tokens if fits_from is None else fits_from
        assert budget.count(built.messages, TOOLS) <= tokens
        assert builder.build(built.messages).messages == built.messages
        key = tuple((message.role, message.content) for message in built.messages)
        if key not in outcomes:
            outcomes.add(key)
            assert_pairs_are_whole(built.messages)
            accepted_by_all(built.messages)


@SLOW
@given(history=histories(max_turns=12), passages=st.lists(st.text(max_size=60), max_size=4), data=st.data())
def test_a_turn_begins_with_the_turn_before_while_nothing_is_dropped(
    history: list[Message], passages: list[str], data: st.DataObject
) -> None:
    budget = data.draw(st.none() | budgets(TokenBudget(0).count(history) * 2 + 100))
    builder = builder_of(None if budget is None else TokenBudget(budget), passages, ())
    ends = [i for i in range(1, len(history) + 1) if i == len(history) or history[i].role == "user"]
    before: list[Message] = []
    for end in ends:
        built = build(builder, history[:end])
        if built is None or not {"tools", "history"} <= set(built.report.kept_whole):
            break
        stable = list(built.messages[: built.stable])
        assert stable[: len(before)] == before
        before = stable


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=40, max_size=120),
    budget=st.integers(300, 1500),
    block=st.sampled_from([0.1, 0.25, 0.5]),
)
def test_drops_come_in_blocks(sizes: list[int], budget: int, block: float) -> None:
    """Between two cuts about a block's worth of tokens has come in, whatever stands beside the history."""
    history = [
        Message(role="user" if i % 2 == 0 else "assistant", content="word " * size)
        for i, size in enumerate(sizes)
    ]
    limit = TokenBudget(budget, block=block)
    builder = ContextBuilder([StateHistoryProvider(), lambda request: request.values["note"]], budget=limit)
    cuts = 0
    before: tuple[Message, ...] = ()
    for end in range(1, len(history) + 1, 2):
        built = builder.build(history[:end], note="note " * (end % 7))
        cuts += built.messages[: len(before)] != before
        before = built.messages[: built.stable]
    came = limit.count(history)
    assert cuts <= came / (limit.available * block * 0.8) + 2


@settings(max_examples=10, deadline=None)
@given(history=histories(max_turns=4), copies=st.integers(100, 400), data=st.data())
def test_long_histories_hold_to_the_same(history: list[Message], copies: int, data: st.DataObject) -> None:
    long = [m.model_copy() for _ in range(copies) for m in history][:5_000]
    budget = TokenBudget(data.draw(budgets(TokenBudget(0).count(long))))
    built = build(ContextBuilder([StateHistoryProvider()], budget=budget), long)
    if built is not None:
        assert budget.count(built.messages) <= budget.available
        assert_pairs_are_whole(built.messages)
        accepted_by_all(built.messages)
        assert (
            ContextBuilder([StateHistoryProvider()], budget=budget).build(built.messages).messages
            == built.messages
        )
