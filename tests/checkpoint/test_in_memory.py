"""InMemoryCheckpointer: the contract, and what is its own."""

import operator
import threading
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel

from jianmu import StateManager
from jianmu.errors import CheckpointArgumentError, EncodeError
from jianmu.memory import InMemoryCheckpointer
from jianmu.memory.checkpoint.base import HistoryCapable, JournalCapable, LeaseCapable
from jianmu.testing import CheckpointerContract, CheckpointerEndurance
from jianmu.testing.checkpointer_contract import Clock


class Chat(BaseModel):
    messages: Annotated[list[dict[str, str]], operator.add] = []


class TestInMemoryCheckpointer(CheckpointerContract):
    durable = False

    def make(self, home: Path) -> InMemoryCheckpointer:
        return InMemoryCheckpointer()

    def make_with_clock(self, home: Path, clock: Clock) -> InMemoryCheckpointer:
        return InMemoryCheckpointer(clock=clock)


class TestInMemoryCheckpointerAtLength(CheckpointerEndurance):
    durable = False
    big_state = 5_000_000
    many_steps = 1_000

    def make(self, home: Path) -> InMemoryCheckpointer:
        return InMemoryCheckpointer()


def test_it_has_every_capability() -> None:
    store = InMemoryCheckpointer()
    for capability in (HistoryCapable, JournalCapable, LeaseCapable):
        assert isinstance(store, capability)


@pytest.mark.parametrize(("history", "kept"), [(1, 1), (3, 3), (100, 100), (None, 150)])
def test_only_the_newest_steps_are_kept(history: int | None, kept: int) -> None:
    store = InMemoryCheckpointer(history=history)
    for step in range(150):
        store.save_checkpoint("t", step, {"n": step})
    assert [info.step for info in store.list_checkpoints("t")] == list(range(149, 149 - kept, -1))


def test_a_hundred_steps_are_kept_by_default() -> None:
    store = InMemoryCheckpointer()
    for step in range(150):
        store.save_checkpoint("t", step, {})
    assert len(store.list_checkpoints("t")) == 100


@pytest.mark.parametrize("history", [0, -1, True, "3"])
def test_a_history_that_means_nothing_is_refused(history: int) -> None:
    with pytest.raises(CheckpointArgumentError, match="history"):
        InMemoryCheckpointer(history=history)


def test_a_managers_dump_is_kept_apart_from_its_owner_and_its_readers() -> None:
    manager = StateManager(Chat)
    manager.initialize({"messages": [{"text": "x"}] * 5})
    store = InMemoryCheckpointer()
    dump = manager.dump_checkpoint()
    store.save_checkpoint("t", 1, dump)
    dump["messages"].append("changed by its owner")
    loaded = store.get_checkpoint("t")
    assert loaded is not None
    assert type(loaded["state"]) is dict
    assert loaded["state"]["messages"] == [{"text": "x"}] * 5
    loaded["state"]["messages"].clear()
    assert len(store.get_checkpoint("t")["state"]["messages"]) == 5  # type: ignore[index]


def test_a_value_that_only_memory_can_hold_is_kept_and_listed() -> None:
    store = InMemoryCheckpointer()
    store.save_checkpoint("t", 1, {"pair": (1, 2), "kind": frozenset({1})})
    assert store.get_checkpoint("t")["state"] == {"pair": (1, 2), "kind": frozenset({1})}  # type: ignore[index]
    assert store.list_checkpoints("t")[0].size > 0
    with pytest.raises(EncodeError):
        store.save_checkpoint("t", 2, {"lock": threading.Lock()})
    assert store.get_checkpoint("t")["step"] == 1  # type: ignore[index]
