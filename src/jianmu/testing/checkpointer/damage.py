"""A stored byte that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import (
    CheckpointError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
)
from jianmu.testing.checkpointer.harness import CheckpointerHarness, close

__all__ = ["DamageSuite"]


class DamageSuite(CheckpointerHarness):
    """What is said of a record that fails its checksum."""

    def test_a_flipped_byte_is_an_error_that_names_thread_and_step_and_the_step_before_is_whole(
        self, home: Path
    ) -> None:
        if not self.exposes_records:
            pytest.skip(f"{type(self).__name__} exposes no records")
        store = self.make(home)
        for step in (1, 2, 3):
            store.save_checkpoint(
                "t", step, {"n": step, "text": "汉字 abc " * 20}, {"0": "RUNNING"}, {"m": step}
            )
        before = [store.get_checkpoint("t"), self.history(store).get_checkpoint("t", step=2)]
        close(store)
        whole = self.read_record(home, "t", 3)
        seen_errors = 0
        for place in range(0, len(whole), max(1, len(whole) // self.flips)):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << (place % 8)
            self.write_record(home, "t", 3, bytes(damaged))
            store = self.make(home)
            seen_errors += self.check_damaged(store, before, place)
            close(store)
        self.write_record(home, "t", 3, whole)
        store = self.make(home)
        assert store.get_checkpoint("t") == before[0]
        close(store)
        assert seen_errors > 0

    def test_a_record_cut_short_is_an_error_or_the_step_before(self, home: Path) -> None:
        if not self.exposes_records:
            pytest.skip(f"{type(self).__name__} exposes no records")
        store = self.make(home)
        for step in (1, 2, 3):
            store.save_checkpoint(
                "t", step, {"n": step, "text": "汉字 abc " * 20}, {"0": "RUNNING"}, {"m": step}
            )
        before = [store.get_checkpoint("t"), self.history(store).get_checkpoint("t", step=2)]
        close(store)
        whole = self.read_record(home, "t", 3)
        for length in range(0, len(whole), max(1, len(whole) // self.flips)):
            self.write_record(home, "t", 3, whole[:length])
            store = self.make(home)
            self.check_damaged(store, before, length)
            close(store)

    def check_damaged(self, store: CheckpointerProtocol, before: list[Any], place: int) -> bool:
        """Check that the newest step is an error or whole, and that the step before can be read."""
        error: CheckpointError | None = None
        try:
            envelope = store.get_checkpoint("t")
        except CheckpointError as raised:
            error = raised
        if error is None:
            assert envelope in before, f"byte {place} was altered silently"
        else:
            assert "'t'" in str(error), f"byte {place}: {error}"
            assert "2" in str(error), f"byte {place}: the error offers no step before: {error}"
        assert self.history(store).get_checkpoint("t", step=2) == before[1], f"byte {place}"
        return error is not None
