"""How a suite gets the back end under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Never

import pytest

from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    HistoryCapable,
    JournalCapable,
    LeaseCapable,
)
from jianmu.testing.checkpointer.samples import state_at

__all__ = ["CheckpointerHarness", "Clock", "close"]

Clock = Callable[[], float]


class CheckpointerHarness:
    """What the suites share: how a back end is made, and what it declares of itself.

    Attributes:
        durable: Whether a second object made at the same home sees what the first one saved.
        many_saves: How many saves a thread makes in the tests of concurrency.
        exposes_records: Whether `read_record` and `write_record` are defined, so that damage can be tried.
        flips: How many bytes of a record are flipped, one at a time, spread over its length.
    """

    durable = True
    many_saves = 100
    exposes_records = False
    flips = 200

    def make(self, home: Path) -> CheckpointerProtocol:
        """Return the back end for the store at `home`, a folder that exists and is empty at first."""
        raise NotImplementedError("define make(self, home) and return a checkpointer")

    def make_with_clock(self, home: Path, clock: Clock) -> CheckpointerProtocol:
        """Return the same with an injected clock, if the back end takes one."""
        pytest.skip(f"{type(self).__name__} defines no make_with_clock")

    def read_record(self, home: Path, thread_id: str, step: int) -> bytes:
        """Return the bytes stored for one step."""
        raise NotImplementedError

    def write_record(self, home: Path, thread_id: str, step: int, data: bytes) -> None:
        """Put `data` in the place of the bytes stored for one step."""
        raise NotImplementedError

    # Fixtures

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        """Return the folder of the store under test."""
        folder = tmp_path / "store"
        folder.mkdir()
        return folder

    @pytest.fixture
    def store(self, home: Path) -> Iterator[CheckpointerProtocol]:
        """Return the back end under test."""
        store = self.make(home)
        yield store
        close(store)

    def again(self, store: CheckpointerProtocol, home: Path) -> CheckpointerProtocol:
        """Return a second object on the same store, or the same one if the store lives in the object."""
        return self.make(home) if self.durable else store

    def history(self, store: object) -> HistoryCapable:
        """Return `store` as one that keeps earlier steps, or skip the test."""
        return store if isinstance(store, HistoryCapable) else skip(store, "HistoryCapable")

    def journal(self, store: object) -> JournalCapable:
        """Return `store` as one that keeps a journal, or skip the test."""
        return store if isinstance(store, JournalCapable) else skip(store, "JournalCapable")

    def leases(self, store: object) -> LeaseCapable:
        """Return `store` as one that gives leases, or skip the test."""
        return store if isinstance(store, LeaseCapable) else skip(store, "LeaseCapable")

    def filled(self, store: CheckpointerProtocol, thread_id: str = "t", steps: int = 5) -> HistoryCapable:
        """Save the steps 1, 3, 5 ... of a growing list, and return the store."""
        history = self.history(store)
        for index in range(steps):
            step = 2 * index + 1
            store.save_checkpoint(
                thread_id, step, state_at(step), {"0": "RUNNING", str(step): "SUCCESS"}, {"m": step}
            )
        return history


def skip(store: object, capability: str) -> Never:
    """Skip a test for want of a capability."""
    pytest.skip(f"{type(store).__name__} is not {capability}")


def close(store: object) -> None:
    """Close a store that can be closed."""
    if isinstance(store, HistoryCapable):
        store.close()
