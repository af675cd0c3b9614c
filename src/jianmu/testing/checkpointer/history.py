"""Earlier steps: list, read, delete, fork, truncate, prune."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jianmu.errors import (
    CheckpointArgumentError,
    CheckpointExistsError,
    CheckpointNotFoundError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    JournalCapable,
)
from jianmu.testing.checkpointer.harness import CheckpointerHarness, close
from jianmu.testing.checkpointer.samples import journal_record, state_at

__all__ = ["HistorySuite"]


class HistorySuite(CheckpointerHarness):
    """What a `HistoryCapable` back end does."""

    def test_every_step_can_be_read_again(self, store: CheckpointerProtocol, home: Path) -> None:
        self.filled(store, steps=40)
        for reader in (store, self.again(store, home)):
            history = self.history(reader)
            for step in (1, 3, 39, 79, 41):
                envelope = history.get_checkpoint("t", step=step)
                assert envelope == {
                    "step": step,
                    "state": state_at(step),
                    "tree": {"0": "RUNNING", str(step): "SUCCESS"},
                    "runtime_metadata": {"m": step},
                }
            for missing in (0, 2, 80, 10_000):
                assert history.get_checkpoint("t", step=missing) is None
            assert history.get_checkpoint("nobody", step=1) is None

    def test_the_list_has_the_newest_first_with_time_and_size(self, store: CheckpointerProtocol) -> None:
        before = datetime.now(UTC)
        history = self.filled(store)
        infos = history.list_checkpoints("t")
        assert [info.step for info in infos] == [9, 7, 5, 3, 1]
        assert [info.step for info in history.list_checkpoints("t", limit=2)] == [9, 7]
        assert history.list_checkpoints("t", limit=0) == []
        assert history.list_checkpoints("nobody") == []
        for wrong in (-1, 1.5, "2", True):
            with pytest.raises(CheckpointArgumentError, match="limit must be None or an int of 0 or more"):
                history.list_checkpoints("t", limit=wrong)  # type: ignore[arg-type]
        assert all(info.size > 0 and info.time.utcoffset() is not None for info in infos)
        assert all(abs((info.time - before).total_seconds()) < 3600 for info in infos)

    def test_threads_are_listed_by_their_own_ids_in_order(self, store: CheckpointerProtocol) -> None:
        history = self.history(store)
        assert history.list_threads() == []
        for thread_id in ("b", "a", "B", "ä"):
            store.save_checkpoint(thread_id, 1, {})
        assert history.list_threads() == ["B", "a", "b", "ä"]

    def test_deleting_a_thread_leaves_its_neighbours(self, store: CheckpointerProtocol, home: Path) -> None:
        history = self.history(store)
        for thread_id in ("t1", "t10", "t", "T1"):
            store.save_checkpoint(thread_id, 1, {"id": thread_id})
        assert history.delete_thread("t1") is True
        assert history.delete_thread("t1") is False
        for reader in (store, self.again(store, home)):
            assert reader.get_checkpoint("t1") is None
            for thread_id in ("t10", "t", "T1"):
                assert reader.get_checkpoint(thread_id)["state"] == {"id": thread_id}
        assert history.list_threads() == ["T1", "t", "t10"]

    def test_an_id_used_again_after_deletion_starts_empty(self, store: CheckpointerProtocol) -> None:
        history = self.filled(store)
        if isinstance(store, JournalCapable):
            store.append_journal("t", journal_record(1))
        history.delete_thread("t")
        assert history.list_checkpoints("t") == []
        if isinstance(store, JournalCapable):
            assert store.read_journal("t") == []
        store.save_checkpoint("t", 1, {"new": True})
        assert [info.step for info in history.list_checkpoints("t")] == [1]
        assert history.get_checkpoint("t", step=9) is None
        assert store.get_checkpoint("t")["state"] == {"new": True}

    def test_a_fork_has_the_steps_up_to_the_one_named(self, store: CheckpointerProtocol, home: Path) -> None:
        history = self.filled(store)
        history.fork_thread("t", "some", step=5)
        history.fork_thread("t", "all")
        for reader in (history, self.history(self.again(store, home))):
            assert [info.step for info in reader.list_checkpoints("some")] == [5, 3, 1]
            assert [info.step for info in reader.list_checkpoints("all")] == [9, 7, 5, 3, 1]
            for step in (1, 3, 5):
                assert reader.get_checkpoint("some", step=step) == reader.get_checkpoint("t", step=step)
        assert history.list_threads() == ["all", "some", "t"]

    def test_a_fork_and_its_origin_go_their_own_ways(self, store: CheckpointerProtocol, home: Path) -> None:
        history = self.filled(store)
        history.fork_thread("t", "fork", step=5)
        store.save_checkpoint("fork", 6, {"items": ["fork"]})
        store.save_checkpoint("t", 11, state_at(11))
        reader = self.again(store, home)
        assert reader.get_checkpoint("fork")["state"] == {"items": ["fork"]}
        assert reader.get_checkpoint("t")["state"] == state_at(11)
        self.history(reader).delete_thread("t")
        assert self.history(reader).get_checkpoint("fork", step=5) is not None
        history.fork_thread("fork", "fork of fork")
        assert store.get_checkpoint("fork of fork")["state"] == {"items": ["fork"]}

    def test_a_fork_does_not_copy_the_journal(self, store: CheckpointerProtocol) -> None:
        history = self.filled(store)
        journal = self.journal(store)
        journal.append_journal("t", journal_record(1))
        history.fork_thread("t", "fork")
        assert journal.read_journal("fork") == []
        assert len(journal.read_journal("t")) == 1

    def test_a_fork_never_rewrites_a_thread(self, store: CheckpointerProtocol) -> None:
        history = self.filled(store)
        store.save_checkpoint("other", 1, {"mine": True})
        for taken in ("other", "t"):
            with pytest.raises(CheckpointExistsError):
                history.fork_thread("t", taken)
        assert store.get_checkpoint("other")["state"] == {"mine": True}
        for thread_id, step in (("t", 4), ("nobody", None), ("nobody", 1)):
            with pytest.raises(CheckpointNotFoundError):
                history.fork_thread(thread_id, "new", step=step)
        assert store.get_checkpoint("new") is None
        assert history.list_threads() == ["other", "t"]

    def test_truncation_drops_the_later_steps_and_the_journal(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        history = self.filled(store)
        if isinstance(store, JournalCapable):
            store.append_journal("t", journal_record(1))
        assert history.truncate_thread("t", step=5) == 2
        assert history.truncate_thread("t", step=5) == 0
        assert [info.step for info in history.list_checkpoints("t")] == [5, 3, 1]
        if isinstance(store, JournalCapable):
            assert store.read_journal("t") == []
        store.save_checkpoint("t", 6, {"items": ["other way"]})
        assert self.again(store, home).get_checkpoint("t")["state"] == {"items": ["other way"]}
        with pytest.raises(CheckpointNotFoundError):
            history.truncate_thread("t", step=7)
        with pytest.raises(CheckpointNotFoundError):
            history.truncate_thread("nobody", step=1)

    def test_pruning_keeps_the_newest_steps_readable(self, store: CheckpointerProtocol, home: Path) -> None:
        history = self.filled(store, steps=40)
        store.save_checkpoint("other", 1, {"n": 1})
        assert history.prune("t", keep_last=3) == 37
        assert history.prune("t", keep_last=3) == 0
        for reader in (history, self.history(self.again(store, home))):
            assert [info.step for info in reader.list_checkpoints("t")] == [79, 77, 75]
            for step in (75, 77, 79):
                envelope = reader.get_checkpoint("t", step=step)
                assert envelope is not None
                assert envelope["state"] == state_at(step)
            assert reader.get_checkpoint("t", step=73) is None
        store.save_checkpoint("t", 81, state_at(81))
        assert self.again(store, home).get_checkpoint("t")["state"] == state_at(81)
        assert store.get_checkpoint("other")["state"] == {"n": 1}
        assert history.prune("nobody", keep_last=1) == 0

    def test_pruning_by_age_never_drops_the_newest(self, home: Path) -> None:
        now = [0.0]
        store = self.make_with_clock(home, lambda: now[0])
        history = self.history(store)
        for step in range(1, 7):
            now[0] = 1000.0 * step
            store.save_checkpoint("t", step, state_at(step))
        assert history.prune("t", older_than=datetime.fromtimestamp(2000.0, UTC)) == 1
        assert history.prune("t", older_than=datetime.fromtimestamp(4000.0, UTC), keep_last=4) == 1
        assert [info.step for info in history.list_checkpoints("t")] == [6, 5, 4, 3]
        assert history.prune("t", older_than=datetime.fromtimestamp(4000.5, UTC), keep_last=1) == 2
        assert history.prune("t", older_than=datetime.fromtimestamp(9000.0, UTC)) == 1
        assert store.get_checkpoint("t")["state"] == state_at(6)
        assert history.list_checkpoints("t")[0].time == datetime.fromtimestamp(6000.0, UTC)
        close(store)

    def test_limits_that_mean_nothing_are_refused(self, store: CheckpointerProtocol) -> None:
        history = self.filled(store)
        for keep_last, older_than in ((None, None), (0, None), (-1, None), (None, datetime(2020, 1, 1))):
            with pytest.raises(CheckpointArgumentError):
                history.prune("t", keep_last=keep_last, older_than=older_than)
        assert len(history.list_checkpoints("t")) == 5

    def test_closing_twice_is_safe(self, store: CheckpointerProtocol, home: Path) -> None:
        history = self.filled(store)
        history.close()
        history.close()
        if self.durable:
            assert self.make(home).get_checkpoint("t")["step"] == 9
