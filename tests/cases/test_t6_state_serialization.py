"""Faults in how peers store typed state, each with the right outcome (parts that need no back end)."""

from __future__ import annotations

import enum
import json
import operator
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel, SecretStr

from jianmu import Ephemeral, StateManager
from jianmu.codec.dump import dump_json
from jianmu.errors import EncodeError, StateValidationError


class Job(BaseModel):
    """A model with an enum class inside."""

    class Phase(enum.Enum):
        READY = "ready"
        DONE = "done"

    phase: Phase = Phase.READY


class Level(enum.IntEnum):
    HIGH = 3


class Colour(enum.StrEnum):
    RED = "red"


class Base(BaseModel):
    a: int = 0


class Sub(Base):
    b: int = 0


class S(BaseModel):
    job: Job = Job(phase=Job.Phase.DONE)
    phase: Job.Phase = Job.Phase.DONE
    level: Level = Level.HIGH
    colour: Colour = Colour.RED
    names: set[str] = {"a"}
    when: datetime = datetime(2026, 12, 1, 8, tzinfo=timezone(timedelta(hours=9)))
    price: Decimal = Decimal("0.10")
    blob: bytes = b"\x00\xff"
    path: Path = Path("a/b")
    uid: UUID = UUID(int=5)
    numbers: dict[int, str] = {1: "a"}
    pair: tuple[int, str] = (1, "x")
    base: Base = Sub(a=1, b=7)
    bases: list[Base] = [Sub(a=1, b=7)]
    ratio: float = 0.0
    count: int = 0
    flag: bool = False
    text: str = ""
    anything: Any = None
    log: Annotated[list[Any], operator.add] = []
    secret: Annotated[SecretStr | None, Ephemeral] = None


READER = """
import json, sys
from jianmu import StateManager
from tests.cases.test_t6_state_serialization import S
state = StateManager(S)
state.initialize(json.loads(sys.stdin.buffer.read()))
for name, value in state.get():
    print(name, type(value).__qualname__, ascii(value))
"""


def started(**fields: Any) -> StateManager[S]:
    state = StateManager(S)
    state.initialize(fields)
    return state


def restored(state: StateManager[S]) -> S:
    again = StateManager(S)
    again.initialize(json.loads(dump_json(state.dump_checkpoint())))
    return again.get()


def test_typed_values_come_back_in_a_fresh_process_equal_and_of_the_same_type() -> None:
    state = started()
    run = subprocess.run(
        [sys.executable, "-c", READER],
        input=dump_json(state.dump_checkpoint()),
        capture_output=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert run.stderr.decode() == ""
    here = [f"{name} {type(value).__qualname__} {value!a}" for name, value in state.get()]
    assert run.stdout.decode().splitlines() == here
    assert "price Decimal Decimal('0.10')" in here
    assert restored(state).when.utcoffset() == timedelta(hours=9)
    assert list(restored(state).numbers) == [1]


@pytest.mark.parametrize("value", [2**80, -(2**63) - 1, 2**63, 2**64, -(2**80)])
def test_ints_beyond_64_bits_are_exact(value: int) -> None:
    got = restored(started(count=value, anything=[value], log=[value]))
    assert (got.count, got.anything, list(got.log)) == (value, [value], [value])


def test_numpy_scalars_become_python_values_in_typed_fields_and_errors_in_any_fields() -> None:
    state = started()
    state.update({"ratio": np.float64(1.5), "count": np.int64(7), "flag": np.bool_(True)})
    got = restored(state)
    assert [(type(v), v) for v in (got.ratio, got.count, got.flag)] == [(float, 1.5), (int, 7), (bool, True)]
    for value in (np.float64(1.5), np.int64(7), np.bool_(True), np.array(1), np.arange(3)):
        state.update({"anything": {"deep": [value]}})
        with pytest.raises(EncodeError, match=r"anything\.deep\.0.*numpy"):
            state.dump_checkpoint()
    state.update({"anything": None})
    assert restored(state) == got


def loop() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (loop(), "contains itself"),
        (SecretStr("hunter2"), "Ephemeral"),
        (threading.Lock(), "lock"),
        (lambda: 0, "function"),
        (Exception("x"), "Exception"),
    ],
)
def test_what_cannot_be_kept_fails_the_save_by_name_and_the_last_dump_stays(value: Any, words: str) -> None:
    state = started(text="before")
    last = dump_json(state.dump_checkpoint())
    state.update({"log": [value]})
    for _ in range(2):  # the second attempt must not take the first one's half for saved
        with pytest.raises(EncodeError, match=rf"log\.0.*{words}") as caught:
            state.dump_checkpoint()
        assert "hunter2" not in str(caught.value)
    again = StateManager(S)
    again.initialize(json.loads(last))
    assert again.get().text == "before"


def test_a_later_change_is_not_in_an_earlier_dump() -> None:
    state = started(anything=[1], log=[1])
    dump = state.dump_checkpoint()
    state.update({"anything": [1, 2], "log": [2]})
    assert (dump["anything"], dump["log"]) == ([1], [1])
    dump["anything"].append(9)
    one, two = StateManager(S), StateManager(S)
    stored = json.loads(dump_json(dump))
    one.initialize(stored)
    two.initialize(stored)
    one.update({"log": ["one"], "anything": 5})
    one.get().names.add("b")
    assert (two.get().log, two.get().anything, two.get().names) == ([1], [1], {"a"})


# The traps of pydantic's own JSON.


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -0.0])
def test_floats_that_json_lacks_come_back_in_typed_and_any_fields(value: float) -> None:
    got = restored(started(ratio=value, anything=[value]))
    assert [repr(got.ratio), repr(got.anything[0])] == [repr(value)] * 2


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "\u2028\u2029\x85\x00\x0b\x1c\r\n", "汉字😀"])
def test_every_str_comes_back(value: str) -> None:
    got = restored(started(text=value, anything={value: value}))
    assert (got.text, got.anything) == (value, {value: value})


def test_a_subclass_keeps_its_fields() -> None:
    got = restored(started())
    assert (got.base, got.bases) == (Sub(a=1, b=7), [Sub(a=1, b=7)])
    assert type(got.base) is type(got.bases[0]) is Sub


def test_any_fields_keep_types() -> None:
    value = [datetime(2026, 1, 1), Decimal("0.10"), (1,), {1}, {1: 2}, Level.HIGH, Colour.RED, Job.Phase.DONE]
    got = restored(started(anything=value)).anything
    assert [(type(item), item) for item in got] == [(type(item), item) for item in value]
    assert str(got[1]) == "0.10"


def test_a_secret_is_ephemeral_or_refused_and_never_stored_as_asterisks() -> None:
    state = started(secret=SecretStr("hunter2"))
    text = dump_json(state.dump_checkpoint())
    assert b"hunter2" not in text
    assert b"***" not in text
    assert state.get().secret == SecretStr("hunter2")
    assert restored(state).secret is None


def test_an_assignment_that_was_never_validated_is_refused_at_the_update() -> None:
    wrong = Sub()
    wrong.b = "abc"  # type: ignore[assignment]
    state = started()
    for changes in (
        {"base": wrong},
        {"bases": [Base(), wrong]},
        {"anything": {"x": wrong}},
        {"log": [wrong]},
    ):
        with pytest.raises(StateValidationError, match=r"Sub is not valid: b"):
            state.update(changes)
    assert restored(state) == S()


def test_ints_too_wide_for_json_readers_are_kept_up_to_a_stated_limit() -> None:
    assert restored(started(count=10**5000)).count == 10**5000
    state = started(count=1 << 70_000)
    with pytest.raises(EncodeError, match=r"count.*65,536"):
        state.dump_checkpoint()
