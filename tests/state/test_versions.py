"""A dump knows its schema's version; migrations bring an older one up to date, a newer one is refused."""

from __future__ import annotations

import json
import operator
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, field_validator

from jianmu import StateManager
from jianmu.codec import Stored, StoredEnum
from jianmu.errors import StateError, StateValidationError, StateVersionError


class Point(BaseModel):
    x: int = 0


class Mood(Enum):
    GOOD = 1


class V1(BaseModel):
    name: str = "ada"
    when: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    point: Point = Point(x=3)
    mood: Mood = Mood.GOOD
    log: Annotated[list[str], operator.add] = ["a"]


def saved(schema: type[BaseModel], version: int = 1, **fields: Any) -> dict[str, Any]:
    state = StateManager(schema, version=version)
    state.initialize(fields)
    return json.loads(json.dumps(state.dump_checkpoint()))  # type: ignore[no-any-return]


class NewPoint(BaseModel):
    x: int
    y: int


class V3(BaseModel):
    title: str
    year: int
    point: NewPoint
    mood: str
    log: Annotated[list[str], operator.add] = []


def test_migrations_run_one_after_the_other_on_decoded_fields() -> None:
    seen: list[dict[str, Any]] = []

    def first(data: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(data))
        data["title"] = data.pop("name").upper()
        return data

    def second(data: dict[str, Any]) -> dict[str, Any]:
        when, point, mood = data.pop("when"), data["point"], data["mood"]
        return {**data, "year": when.year, "point": {**point, "y": 0}, "mood": mood.member.lower()}

    state = StateManager(V3, version=3, migrations={1: first, 2: second})
    state.initialize(saved(V1))
    assert state.get() == V3(title="ADA", year=2026, point=NewPoint(x=3, y=0), mood="good", log=["a"])
    assert isinstance(seen[0]["point"], Stored)
    assert seen[0]["point"].of.endswith(":Point")
    assert isinstance(seen[0]["mood"], StoredEnum)
    assert state.dump_checkpoint()["~version"] == 3


def test_what_a_migration_does_not_touch_is_rebuilt_as_it_was() -> None:
    class V2(V1):
        more: int = 0

    state = StateManager(V2, version=2, migrations={1: lambda data: data})
    state.initialize(saved(V1))
    assert state.get() == V2()


def test_a_newer_dump_is_refused() -> None:
    with pytest.raises(StateVersionError, match=r"version 7.*is 2"):
        StateManager(V1, version=2).initialize(saved(V1, 7))


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.0, True])
def test_a_version_that_is_none_is_refused(version: Any) -> None:
    with pytest.raises(StateVersionError):
        StateManager(V1).initialize({**saved(V1), "~version": version})


def boom(data: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("migrations", "words"),
    [
        ({}, "no migration leads on from 1"),
        ({2: lambda data: data}, "no migration leads on from 1"),
        ({1: lambda data: data}, "no migration leads on from 2"),
        ({1: boom, 2: boom}, "from version 1 failed.*boom"),
        ({1: lambda data: None, 2: boom}, "returned a NoneType"),
    ],
)
def test_a_missing_or_failing_migration_is_named(migrations: Any, words: str) -> None:
    state = StateManager(V3, version=3, migrations=migrations)
    with pytest.raises(StateVersionError, match=words):
        state.initialize(saved(V1))
    with pytest.raises(StateError, match="not initialized"):
        state.get()


def test_a_stored_state_that_the_schema_refuses_is_an_error_with_the_path() -> None:
    for field, plain, words in (
        ("name", 5, "name"),
        ("point", {"~": "model", "of": "tests.state.test_versions:Point", "v": {"x": "no"}}, "point.*x"),
        ("mood", {"~": "enum", "of": "tests.state.test_versions:Mood", "v": "BAD"}, "mood.*BAD"),
        ("log", [1], "log.0"),
        ("log", ["a", {"~": "datetime", "v": "yesterday"}], "log.1.*datetime"),
        ("gone", 1, "gone.*migration"),
        ("point", {"~": "model", "of": "os:system", "v": {}}, "point.*os:system"),
    ):
        state = StateManager(V1)
        state.initialize({"name": "before"})
        with pytest.raises(StateValidationError, match=words):
            state.initialize({**saved(V1), field: plain})
        assert state.get().name == "before"


def test_a_new_field_takes_its_default_and_a_required_one_is_an_error() -> None:
    class More(V1):
        more: int = 4

    class Required(V1):
        more: int

    state = StateManager(More)
    state.initialize(saved(V1))
    assert state.get().more == 4
    with pytest.raises(StateValidationError, match="more: Field required"):
        StateManager(Required).initialize(saved(V1))


def test_a_validator_that_changes_its_own_result_is_not_applied_twice() -> None:
    class Hashed(BaseModel):
        word: str = ""
        size: float = 1.5

        @field_validator("word")
        @classmethod
        def starred(cls, value: str) -> str:
            return f"*{value}"

    state = StateManager(Hashed)
    state.initialize({"word": "x"})
    dump = {**saved(Hashed, word="x"), "size": 2}
    for _ in range(3):
        state.initialize(dump)
        assert (state.get().word, type(state.get().size)) == ("*x", float)
        dump = json.loads(json.dumps(state.dump_checkpoint()))


def test_a_default_that_its_annotation_forbids_does_not_lock_the_state_up() -> None:
    class Inner(BaseModel):
        note: str = None  # type: ignore[assignment]
        n: int = 0

    class Sloppy(BaseModel):
        word: str = None  # type: ignore[assignment]
        inner: Inner = Inner()
        seen: list[Inner] = []

    state = StateManager(Sloppy)
    state.initialize()
    state.update({"seen": [Inner(n=1)]})
    again = StateManager(Sloppy)
    again.initialize(json.loads(json.dumps(state.dump_checkpoint())))
    assert again.get() == Sloppy(seen=[Inner(n=1)])
    with pytest.raises(StateValidationError, match="word"):
        again.update({"word": 5})


def test_a_validator_that_refuses_its_own_result_is_refused_before_anything_is_saved() -> None:
    def split(value: Any) -> list[str]:
        if not isinstance(value, str):
            raise ValueError("text is wanted")
        return value.split()

    class Split(BaseModel):
        words: Annotated[list[str], BeforeValidator(split)] = []

    class Holder(BaseModel):
        n: int = 0
        split: Split | None = None

    state = StateManager(Split)
    state.initialize({})
    for act in (lambda: state.update({"words": "a b"}), lambda: state.initialize({"words": "a b"})):
        with pytest.raises(StateValidationError, match=r"words.*own results"):
            act()
    holder = StateManager(Holder)
    holder.initialize()
    with pytest.raises(StateValidationError, match=r"split: .*Split is not valid: words"):
        holder.update({"split": Split(words="a b")})


def test_bookkeeping_comes_back() -> None:
    state = StateManager(V1)
    state.initialize()
    state.update({"name": "x"})
    state.update({"log": ["b"]})
    meta = json.loads(json.dumps(state.dump_runtime_metadata()))
    assert meta == {"updates": 2}
    again = StateManager(V1)
    again.initialize(state.dump_checkpoint())
    again.restore_runtime_metadata({**meta, "runner": {}})
    assert again.dump_runtime_metadata() == {"updates": 2}
    again.restore_runtime_metadata(None)
    assert again.dump_runtime_metadata() == {"updates": 0}
    with pytest.raises(ValueError, match="no count"):
        again.restore_runtime_metadata({"updates": "many"})
