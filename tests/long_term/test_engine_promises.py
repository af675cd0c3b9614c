"""Promises that hold on both databases, checked against plain Python: filters, expiry, what an index says."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jianmu.errors import MemoryInputError
from jianmu.memory import PostgresLongTermMemory, SqliteLongTermMemory
from jianmu.memory.long_term.engine.memory import EngineMemory
from tests.long_term.embedders import hashed
from tests.long_term.killing import assert_index_is_what_the_texts_say
from tests.long_term_postgres.test_contract import schema_of

Open = Callable[..., EngineMemory]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def open_memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens a fresh memory each time."""
    opened: list[EngineMemory] = []

    def fresh(**options: Any) -> EngineMemory:
        folder: Path = tmp_path_factory.mktemp("m")
        options.setdefault("embedder", hashed())
        if request.param == "sqlite":
            opened.append(SqliteLongTermMemory(folder / "m.db", **options))
        else:
            dsn = schema_of(request.getfixturevalue("postgres_dsn"), folder)
            opened.append(PostgresLongTermMemory(dsn, **options))
        return opened[-1]

    yield fresh
    for memory in opened:
        memory.close()


class Clock:
    now = 1_796_000_000.0

    def __call__(self) -> float:
        return self.now


# -- filters ------------------------------------------------------------------------------------------

FIELDS = ("n", "lang", "flag", "tags", "deep.inner", "none")
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.5]),
    st.sampled_from(["zh", "en", "1", ""]),
    st.booleans(),
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "n": VALUES,
        "lang": VALUES,
        "flag": st.booleans(),
        "tags": st.lists(VALUES, max_size=3),
        "deep": st.fixed_dictionaries({}, optional={"inner": VALUES}),
        "none": st.none(),
    },
)
CLAUSES = st.one_of(
    st.tuples(st.sampled_from(FIELDS), VALUES).map(lambda pair: {pair[0]: pair[1]}),
    st.tuples(st.sampled_from(FIELDS), st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), VALUES).map(
        lambda three: {three[0]: {three[1]: three[2]}}
    ),
    st.tuples(st.sampled_from(FIELDS), st.lists(VALUES, max_size=3)).map(lambda p: {p[0]: {"in": p[1]}}),
    st.tuples(st.sampled_from(FIELDS), st.booleans()).map(lambda pair: {pair[0]: {"exists": pair[1]}}),
)
FILTERS = st.recursive(
    CLAUSES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"and": some}),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"or": some}),
        inner.map(lambda one: {"not": one}),
    ),
    max_leaves=6,
)
ABSENT = object()


def oracle(metadata: dict[str, Any], spec: dict[str, Any]) -> bool:
    """The documented meaning, written again as a plain evaluation."""
    return all(_clause(metadata, name, operand) for name, operand in spec.items())


def _clause(metadata: dict[str, Any], name: str, operand: Any) -> bool:
    if name == "and":
        return all(oracle(metadata, one) for one in operand)
    if name == "or":
        return any(oracle(metadata, one) for one in operand)
    if name == "not":
        return not oracle(metadata, operand)
    value = (
        metadata.get("deep", {}).get("inner", ABSENT) if name == "deep.inner" else metadata.get(name, ABSENT)
    )
    operations = operand if isinstance(operand, dict) else {"eq": operand}
    return all(_holds(value, operation, wanted) for operation, wanted in operations.items())


def _holds(value: Any, operation: str, wanted: Any) -> bool:
    if operation == "exists":
        return (value is not ABSENT) is wanted
    if operation == "ne":
        return value is ABSENT or not _same(value, wanted)
    if value is ABSENT:
        return False
    if operation == "in":
        return any(_same(value, one) for one in wanted)
    if operation == "eq":
        return _same(value, wanted)
    kinds = {"number" if type(one) in (int, float) else type(one).__name__ for one in (value, wanted)}
    if kinds not in ({"number"}, {"str"}):
        return False
    return {
        "gt": value > wanted,
        "gte": value >= wanted,
        "lt": value < wanted,
        "lte": value <= wanted,
    }[operation]


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return any(_same(one, wanted) for one in value)
    return (type(value) is bool) == (type(wanted) is bool) and value == wanted


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(METADATA, min_size=1, max_size=12), st.lists(FILTERS, min_size=1, max_size=6))
def test_a_filter_means_what_plain_python_says(
    open_memory: Open, notes: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    memory = open_memory(embedder=None)
    memory.record_many(
        {"inputs": f"note number{at} about tea", "metadata": each} for at, each in enumerate(notes)
    )
    for spec in filters:
        found = memory.retrieve("tea", limit=100, filters=spec)
        numbers = sorted(int(hit["content"].split()[1].removeprefix("number")) for hit in found)
        assert numbers == [at for at, each in enumerate(notes) if oracle(each, spec)], spec
    memory.close()


# -- expiry -------------------------------------------------------------------------------------------


def test_what_has_expired_is_gone_from_every_read(open_memory: Open) -> None:
    clock = Clock()
    memory = open_memory(clock=clock)
    gone = memory.record("tea for a minute", key="k", ttl=60, session="s")["id"] or ""
    memory.record("tea beside it", session="s")
    clock.now += 61
    assert memory.get(gone) is None
    assert memory.get("k") is None
    assert memory.history(gone) == []
    assert [item["content"] for item in memory.list()] == ["tea beside it"]
    for options in (
        {},
        {"deep": True},
        {"as_of": clock.now},
        {"filters": {}},
        {"recency": 0.5},
        {"diversity": 0.5},
    ):
        assert [hit["content"] for hit in memory.retrieve("tea for a minute", **options)] == ["tea beside it"]
    assert memory.delete(gone) is False
    assert memory.update(memory.list()[0]["id"] or "", "tea for a minute")["content"] == "tea for a minute"
    assert_index_is_what_the_texts_say(memory)


def test_a_superseded_text_is_told_no_longer_than_its_own_time(open_memory: Open) -> None:
    clock = Clock()
    memory = open_memory(clock=clock)
    memory.record("lives in Paris", key="home", time=clock.now - 100, ttl=60)
    memory.record("lives in London", key="home", time=clock.now - 10)
    then = clock.now - 50
    assert [hit["content"] for hit in memory.retrieve("lives in", as_of=then)] == ["lives in Paris"]
    clock.now += 61
    assert memory.retrieve("lives in", as_of=then) == []
    assert [entry["content"] for entry in memory.history("home")] == ["lives in London"]


def test_the_history_of_what_has_expired_is_told_no_more(open_memory: Open) -> None:
    clock = Clock()
    memory = open_memory(clock=clock)
    memory.record("lives in Paris", key="home", time=clock.now - 100)
    memory.record("lives in London", key="home", time=clock.now - 10, ttl=60)
    clock.now += 61
    assert memory.retrieve("lives in", as_of=clock.now - 111) == []


# -- whatever happens, the index is what the texts say ------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_after_any_sequence_of_changes_the_index_is_that_of_the_texts(open_memory: Open, seed: int) -> None:
    chance, clock = random.Random(seed), Clock()
    memory = open_memory(clock=clock)
    words = ["tea", "coffee", "garden", "bridge", "Paris", "猫", "喜欢", "2023", "rain"]

    def item() -> dict[str, Any]:
        return {
            "inputs": " ".join(chance.choices(words, k=chance.choice([1, 2, 3, 150]))),
            "session": chance.choice([None, "s", "t"]),
            "key": chance.choice([None, None, "a", "b", "c"]),
            "ttl": chance.choice([None, None, 5, 50]),
            "speaker": chance.choice([None, "Ann"]),
        }

    for _ in range(60):
        kind = chance.random()
        known = [one["id"] or "" for one in memory.list()]
        if kind < 0.4:
            memory.record(**item())
        elif kind < 0.6:
            memory.record_many(item() for _ in range(chance.randint(1, 9)))
        elif kind < 0.75 and known:
            memory.delete(chance.choice([*known, "a", "b"]))
        elif kind < 0.9 and known:
            with contextlib.suppress(MemoryInputError):  # another has this very text
                memory.update(chance.choice(known), " ".join(chance.choices(words, k=3)))
        else:
            clock.now += chance.choice([1, 10])
    assert_index_is_what_the_texts_say(memory)
    assert memory.reindex(progress=False) >= len(memory.list())
    assert_index_is_what_the_texts_say(memory)


# -- erasing, changing, times ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["parted", "joined"])
def test_an_erased_text_is_in_no_other_memorys_history(open_memory: Open, way: str) -> None:
    clock = Clock()
    memory = open_memory(clock=clock)
    memory.record("my PIN is zork4711", key="pin")
    if way == "parted":
        memory.record("my PIN is zork4711", key="note")
    else:
        memory.record("I have no PIN", key="other")
    clock.now += 100
    memory.record("I have no PIN", key="pin")
    clock.now += 100
    victim = memory.get("note" if way == "parted" else "pin")
    assert victim is not None
    memory.erase(victim["id"])
    found = memory.retrieve("zork4711", as_of=clock.now - 150)
    assert not [hit for hit in found if "zork4711" in hit["content"]]


def test_another_spelling_or_time_of_the_same_text_is_kept_as_given(open_memory: Open) -> None:
    memory = open_memory(clock=Clock())
    first = memory.record("H2O is water")
    assert memory.update(first["id"], "H₂O  is water", time="2020-01-01")["content"] == "H₂O  is water"
    told = memory.get(first["id"])
    assert told is not None
    assert told["content"] == "H₂O  is water"
    assert str(told["metadata"]["time"]).startswith("2020-01-01")
    later = memory.update(first["id"], time="2021-05-05")
    assert later["content"] == "H₂O  is water"
    assert str(later["metadata"]["time"]).startswith("2021-05-05")
    assert memory.retrieve("H2O water")[0]["id"] == first["id"]
    assert_index_is_what_the_texts_say(memory)


@pytest.mark.parametrize("when", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", 1e18])
def test_a_time_that_has_no_date_is_refused_before_it_is_stored(open_memory: Open, when: Any) -> None:
    memory = open_memory(clock=Clock())
    memory.record("tea is green")
    with pytest.raises(MemoryInputError, match="out of range"):
        memory.record("tea party", time=when)
    with pytest.raises(MemoryInputError, match="out of range"):
        memory.retrieve("tea", as_of=when)
    assert len(memory.retrieve("tea")) == 1


def nested(inner: Any, name: str, levels: int = 5_000) -> Any:
    for _ in range(levels):
        inner = {name: inner}
    return inner


@pytest.mark.parametrize(
    "wrong",
    [
        lambda memory: memory.record("a", ttl=10**400),
        lambda memory: memory.record("a", metadata=nested({}, "a")),
        lambda memory: memory.retrieve("tea", filters=nested({"n": 1}, "not")),
        lambda memory: memory.retrieve("tea", recency="x"),
        lambda memory: memory.retrieve("tea", recency=0.5, half_life=None),
        lambda memory: memory.retrieve("tea", min_score="3"),
        lambda memory: memory.retrieve("tea", diversity=[]),
        lambda memory: memory.get(3),
        lambda memory: memory.delete(None),
    ],
    ids=range(9),
)
def test_an_argument_that_cannot_be_used_is_named(open_memory: Open, wrong: Callable[[Any], Any]) -> None:
    memory = open_memory(clock=Clock())
    memory.record("tea is green")
    with pytest.raises(MemoryInputError):
        wrong(memory)
    assert len(memory.retrieve("tea")) == 1
