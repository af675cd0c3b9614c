"""InMemoryCheckpointer: the contract, and what is its own."""

from pathlib import Path

import pytest

from jianmu.errors import CheckpointArgumentError
from jianmu.memory import InMemoryCheckpointer
from jianmu.memory.checkpoint.base import HistoryCapable, JournalCapable, LeaseCapable
from jianmu.testing import CheckpointerContract, CheckpointerEndurance
from jianmu.testing.checkpointer_contract import Clock


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
