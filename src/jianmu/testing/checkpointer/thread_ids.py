"""Any id keeps its own data, and the order is that of saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import (
    CheckpointArgumentError,
    CheckpointExistsError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    HistoryCapable,
    JournalCapable,
)
from jianmu.testing.checkpointer.harness import CheckpointerHarness, close
from jianmu.testing.checkpointer.samples import HOSTILE_IDS

__all__ = ["ThreadIdSuite"]


class ThreadIdSuite(CheckpointerHarness):
    """Thread ids, steps and their order."""

    def test_hostile_thread_ids_each_keep_their_own_data(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        ids = list(dict.fromkeys(HOSTILE_IDS))
        for number, thread_id in enumerate(ids):
            store.save_checkpoint(thread_id, 1, {"n": number, "id": ascii(thread_id)[:50]})
        for reader in (store, self.again(store, home)):
            for number, thread_id in enumerate(ids):
                assert reader.get_checkpoint(thread_id)["state"]["n"] == number, ascii(thread_id)[:80]
            if isinstance(reader, HistoryCapable):
                assert reader.list_threads() == sorted(ids)

    def test_no_thread_id_leaves_the_home(self, store: CheckpointerProtocol, home: Path) -> None:
        for thread_id in dict.fromkeys(HOSTILE_IDS):
            store.save_checkpoint(thread_id, 1, {})
        assert [path.name for path in home.parent.iterdir()] == [home.name]

    @pytest.mark.parametrize("bad", ["", None, 1, b"t", ("t",)], ids=repr)
    def test_what_is_no_thread_id_is_refused(self, store: CheckpointerProtocol, bad: Any) -> None:
        with pytest.raises(CheckpointArgumentError):
            store.save_checkpoint(bad, 1, {})
        with pytest.raises(CheckpointArgumentError):
            store.get_checkpoint(bad)

    @pytest.mark.parametrize("bad", [-1, "1", 1.0, True, None], ids=repr)
    def test_what_is_no_step_is_refused(self, store: CheckpointerProtocol, bad: Any) -> None:
        with pytest.raises(CheckpointArgumentError):
            store.save_checkpoint("t", bad, {})
        assert store.get_checkpoint("t") is None

    def test_the_last_step_can_be_saved_again_where_there_is_no_journal(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        if isinstance(store, JournalCapable):
            pytest.skip(f"{type(store).__name__} has a journal")
        store.save_checkpoint("t", 5, {"n": 5})
        store.save_checkpoint("t", 5, {"n": 5}, None, {"journal": ["an answer"]})
        envelope = self.again(store, home).get_checkpoint("t")
        assert (envelope["step"], envelope["runtime_metadata"]) == (5, {"journal": ["an answer"]})
        store.save_checkpoint("t", 6, {"n": 6})
        assert store.get_checkpoint("t")["state"] == {"n": 6}

    def test_a_step_is_never_rewritten(self, store: CheckpointerProtocol, home: Path) -> None:
        self.journal(store)  # a back end without one gets the last step again, with the answers inside
        store.save_checkpoint("t", 5, {"n": 5})
        for step in (5, 4, 0):
            for writer in (store, self.again(store, home)):
                with pytest.raises(CheckpointExistsError, match="step 5"):
                    writer.save_checkpoint("t", step, {"n": "late"})
        assert store.get_checkpoint("t")["state"] == {"n": 5}
        store.save_checkpoint("t", 9, {"n": 9})
        assert store.get_checkpoint("t")["step"] == 9

    def test_the_newest_is_the_last_saved_whatever_the_clock_says(self, home: Path) -> None:
        moments = iter([1000.0, 999.5, 999.5])
        store = self.make_with_clock(home, lambda: next(moments, 900.0))
        for n in (1, 2, 3):
            store.save_checkpoint("t", n, {"n": n})
        assert self.again(store, home).get_checkpoint("t")["state"] == {"n": 3}
        history = self.history(self.again(store, home))
        assert [info.step for info in history.list_checkpoints("t")] == [3, 2, 1]
        close(store)
