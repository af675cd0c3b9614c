"""An update merges by the schema's rules, wholly or not at all."""

from __future__ import annotations

import operator
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from jianmu import Ephemeral, StateManager
from jianmu.errors import ConfigError, StateError, StateValidationError
from tests.codec.likeness import difference


def longest(old: str, new: str) -> str:
    return max(old, new, key=len)


class Item(BaseModel):
    n: int = 0
    tags: list[str] = []


class S(BaseModel):
    log: Annotated[list[str], operator.add] = []
    items: Annotated[list[Item], operator.add] = []
    total: Annotated[int, operator.add] = 0
    word: Annotated[str, longest] = ""
    merged: Annotated[dict[str, int], operator.or_] = {}
    pair: tuple[int, ...] = ()
    plain: list[int] = []
    n: int = 0
    anything: Any = None


def started(**fields: Any) -> StateManager[S]:
    state = StateManager(S)
    state.initialize(fields)
    return state


def test_reducers_merge_and_other_fields_are_replaced() -> None:
    state = started(log=["in"])
    state.update({"log": ["a"], "total": 2, "word": "long", "merged": {"a": 1}, "plain": [1], "n": 5})
    state.update({"log": ["b"], "total": 3, "word": "x", "merged": {"b": 2}, "plain": [2]})
    assert state.get() == S(
        log=["in", "a", "b"], total=5, word="long", merged={"a": 1, "b": 2}, plain=[2], n=5
    )


def test_nothing_added_changes_nothing_and_clears_nothing() -> None:
    state = started(log=["in"])
    heard: list[frozenset[str]] = []
    state.subscribe(heard.append)
    state.update({"log": []})
    state.update({})
    state.update({"n": 0})
    assert state.get().log == ["in"]
    assert heard == []
    assert state.dump_runtime_metadata() == {"updates": 0}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        (Decimal("0.1"), Decimal("0.10")),
        (datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9))), datetime(2026, 1, 1, tzinfo=UTC)),
        (datetime(2026, 1, 1), datetime(2026, 1, 1, fold=1)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1}, {True}),
        ([(1,)], [(True,)]),
        ([1, [0.0]], [1, [-0.0]]),
        (defaultdict(list), defaultdict(dict)),
        (deque([1]), deque([1], 3)),
        (Item(), Item(n=0)),
        (frozenset({(0.0,)}), frozenset({(-0.0,)})),
    ],
)
def test_a_new_value_that_only_equals_the_old_one_is_still_taken(old: Any, new: Any) -> None:
    state = started(anything=old)
    state.dump_checkpoint()
    heard: list[frozenset[str]] = []
    state.subscribe(heard.append)
    state.update({"anything": new})
    assert heard == [{"anything"}]
    again = StateManager(S)
    again.initialize(state.dump_checkpoint())
    assert difference(again.get().anything, new) is None


def test_values_are_coerced_as_the_schema_says() -> None:
    state = started()
    state.update({"n": "7", "pair": [1, 2], "items": [{"n": 1}]})
    got = state.get()
    assert (got.n, got.pair, got.items) == (7, (1, 2), [Item(n=1)])


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"n": "seven"}, ["n"]),
        ({"log": ["ok"], "n": "seven"}, ["n"]),
        ({"n": 1, "log": [3]}, ["log.0"]),
        ({"n": 1, "log": "text"}, ["log", "list"]),
        ({"n": 1, "items": [{}, {"n": "x"}]}, ["items.1.n"]),
        ({"log": ["x"], "total": "x"}, ["total", "reducer", "str"]),
        ({"merged": [1]}, ["merged"]),
        ({"log": ["x"], "m": 1}, ["m", "its fields are log"]),
        ({"n": 1, "items": [Item.model_construct(n="x")]}, ["items.0", "n"]),
        ({"n": 1, "anything": {"deep": [Item.model_construct(tags=5)]}}, ["anything.deep.0", "tags"]),
        ({"n": 1, 5: 1}, ["5"]),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_the_state_stays_as_it_was(
    changes: dict[Any, Any], names: list[str]
) -> None:
    state = started(log=["in"], n=3)
    before = state.dump_checkpoint()
    heard: list[frozenset[str]] = []
    state.subscribe(heard.append)
    with pytest.raises(StateValidationError) as caught:
        state.update(changes)
    for name in names:
        assert name in str(caught.value)
    assert state.get() == S(log=["in"], n=3)
    assert state.dump_checkpoint() == before
    assert heard == []


def test_an_error_never_shows_the_value() -> None:
    state = started()
    with pytest.raises(StateValidationError) as caught:
        state.update({"n": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_several_updates_are_one_and_a_preview_commits_nothing() -> None:
    state = started(log=["in"], total=1)
    seen = state.preview({"log": ["a"], "total": 1}, {"log": ["b"], "total": 1})
    assert (seen.log, seen.total) == (["in", "a", "b"], 3)
    assert state.get() == S(log=["in"], total=1)
    with pytest.raises(StateValidationError):
        state.update({"log": ["a"]}, {"n": "x"})
    assert state.get() == S(log=["in"], total=1)
    heard: list[frozenset[str]] = []
    state.subscribe(heard.append)
    state.update({"log": ["a"], "total": 1}, {"log": ["b"], "total": 1})
    assert state.get() == seen
    assert heard == [frozenset({"log", "total"})]


class Checked(BaseModel):
    model_config = ConfigDict(extra="forbid")
    low: int = 0
    high: int = 10
    spread: int = 10
    log: Annotated[list[str], operator.add] = []

    @model_validator(mode="after")
    def ordered(self) -> Checked:
        if self.low > self.high:
            raise ValueError("low above high")
        self.spread = self.high - self.low
        return self


def test_a_validator_over_the_whole_model_sees_all_changes_at_once() -> None:
    state = StateManager(Checked)
    state.initialize()
    heard: list[frozenset[str]] = []
    state.subscribe(heard.append)
    state.update({"low": 20, "high": 25, "log": ["a"]})
    state.update({"log": ["b"]})
    assert state.get() == Checked(low=20, high=25, log=["a", "b"])
    assert state.get().spread == 5
    assert heard == [{"low", "high", "spread", "log"}, {"log"}]
    with pytest.raises(StateValidationError, match="low above high"):
        state.update({"high": 3})
    assert state.get().high == 25
    dump = state.dump_checkpoint()
    again = StateManager(Checked)
    again.initialize(dump)
    assert again.get() == state.get()


def upper(value: str) -> str:
    return value.upper()


class Fielded(BaseModel):
    name: Annotated[str, AfterValidator(upper)] = ""
    short: Annotated[list[int], operator.add, Field(max_length=2)] = []
    even: Annotated[list[int], operator.add] = []
    limit: int = 5
    amount: int = 0
    frozen_field: int = Field(default=1, frozen=True)

    @field_validator("even")
    @classmethod
    def sum_is_even(cls, value: list[int]) -> list[int]:
        if sum(value) % 2:
            raise ValueError("odd sum")
        return value

    @field_validator("amount")
    @classmethod
    def below_limit(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data["limit"]:
            raise ValueError("above the limit")
        return value


def test_validators_and_constraints_of_a_field_hold_for_the_merged_value() -> None:
    state = StateManager(Fielded)
    state.initialize()
    state.update({"name": "ada", "short": [1], "even": [2]})
    state.update({"short": [2], "even": [4]})
    assert (state.get().name, state.get().short, state.get().even) == ("ADA", [1, 2], [2, 4])
    with pytest.raises(StateValidationError, match="short"):
        state.update({"short": [3]})
    with pytest.raises(StateValidationError, match=r"even.*odd sum"):
        state.update({"even": [1]})
    with pytest.raises(StateValidationError, match=r"amount.*above the limit"):
        state.update({"amount": 6})
    state.update({"amount": 6, "limit": 9})
    assert state.get().amount == 6


def test_a_frozen_schema_can_be_updated_and_is_read_as_what_it_is() -> None:
    class Still(BaseModel):
        model_config = ConfigDict(frozen=True)
        n: int = 0
        log: Annotated[list[int], operator.add] = []

    state = StateManager(Still)
    state.initialize({"n": 1})
    state.update({"n": 2, "log": [1]})
    assert state.get() == Still(n=2, log=[1])


def test_an_open_schema_keeps_names_of_its_own() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        n: int = 0

    state = StateManager(Open)
    state.initialize({"n": 1, "more": (1, 2)})
    state.update({"other": {3}, "n": 2})
    assert state.get() == Open(n=2, more=(1, 2), other={3})  # type: ignore[call-arg]
    again = StateManager(Open)
    again.initialize(state.dump_checkpoint())
    assert again.get() == state.get()
    with pytest.raises(StateValidationError, match="~version"):
        state.update({"~version": 3})


def test_a_reducer_cannot_reach_into_the_state() -> None:
    def greedy(old: dict[str, list[int]], new: int) -> NoReturn:
        old["a"].append(new)
        raise RuntimeError("after the damage")

    class G(BaseModel):
        d: Annotated[dict[str, list[int]], greedy] = {"a": [1]}

    state = StateManager(G)
    state.initialize()
    with pytest.raises(StateValidationError, match=r"d: its reducer.*after the damage"):
        state.update({"d": 5})
    assert state.get().d == {"a": [1]}


def test_input_names_are_checked_and_aliases_accepted() -> None:
    class Aliased(BaseModel):
        n: int = Field(default=0, alias="N")
        log: Annotated[list[str], operator.add] = []

    state = StateManager(Aliased)
    state.initialize({"N": 3})
    assert state.get().n == 3
    state.initialize({"n": 4})
    state.update({"n": 5})
    assert state.get().n == 5
    again = StateManager(Aliased)
    again.initialize(state.dump_checkpoint())
    assert again.get().n == 5
    with pytest.raises(StateValidationError, match="no field wrong; its fields are n, log"):
        state.initialize({"wrong": 1})
    assert state.get().n == 5


def test_the_state_must_be_started_and_the_input_a_dict_or_the_schema() -> None:
    state = StateManager(S)
    for act in (state.get, state.dump_checkpoint, lambda: state.update({"n": 1})):
        with pytest.raises(StateError, match="initialize"):
            act()
    state.initialize(S(n=4))
    assert state.get().n == 4
    for wrong in ([1], Item(), "text"):
        with pytest.raises(StateValidationError):
            state.initialize(wrong)  # type: ignore[arg-type]
    with pytest.raises(StateValidationError, match="dict of fields"):
        state.update([1])  # type: ignore[arg-type]


def test_an_instance_that_holds_a_wrong_value_is_refused() -> None:
    wrong = S()
    wrong.n = "abc"  # type: ignore[assignment]
    with pytest.raises(StateValidationError, match="n: "):
        StateManager(S).initialize(wrong)


def test_a_schema_that_cannot_work_is_refused_when_the_manager_is_made() -> None:
    class NoDefault(BaseModel):
        handle: Annotated[Any, Ephemeral]

    class TwoReducers(BaseModel):
        n: Annotated[int, operator.add, operator.mul] = 0

    class Unary(BaseModel):
        n: Annotated[int, abs] = 0

    class Inside(BaseModel):
        log: Annotated[list[int], operator.add] | None = None

    for schema, words in (
        (NoDefault, "handle.*default"),
        (TwoReducers, "2 reducers"),
        (Unary, "old, new"),
        (Inside, "stands inside"),
        (dict, "BaseModel"),
        (S(), "BaseModel"),
    ):
        with pytest.raises(ConfigError, match=words):
            StateManager(schema)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="version"):
        StateManager(S, version=0)
    with pytest.raises(ConfigError, match="migration from version 2"):
        StateManager(S, version=2, migrations={2: dict})


operations = st.lists(
    st.one_of(
        st.tuples(st.just("log"), st.lists(st.text(max_size=2), max_size=3)),
        st.tuples(st.just("total"), st.integers(-9, 9)),
        st.tuples(st.just("plain"), st.lists(st.integers(), max_size=3)),
        st.tuples(st.just("bad"), st.none()),
        st.tuples(st.just("hold"), st.none()),
        st.tuples(st.just("save"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=25,
)


@given(operations)
@settings(max_examples=150, deadline=None)
def test_any_order_of_updates_reads_saves_and_restarts_gives_what_plain_python_gives(
    steps: list[tuple[str, Any]],
) -> None:
    state, model = started(), S()
    held: list[tuple[S, S]] = []
    for name, value in steps:
        if name == "bad":
            with pytest.raises(StateValidationError):
                state.update({"log": ["x"], "n": "no"})
        elif name == "hold":
            held.append((state.get(), model.model_copy(deep=True)))
        elif name == "save":
            state.dump_checkpoint()
        elif name == "restart":
            dump = state.dump_checkpoint()
            state = StateManager(S)
            state.initialize(dump)
        else:
            state.update({name: value})
            old = getattr(model, name)
            setattr(model, name, value if name == "plain" else old + value)
        assert state.get() == model
    for seen, then in held:
        assert seen == then
