"""The tests that every checkpointer passes.

A third party's back end is tested in five lines::

    from jianmu.testing import CheckpointerContract

    class TestMyCheckpointer(CheckpointerContract):
        def make(self, home):
            return MyCheckpointer(home / "checkpoints.db")

What a back end can do beyond its two methods is found with `isinstance` on the protocols of
`jianmu.memory.checkpoint.base`; a test of what it cannot do is skipped and says so. What cannot be found out
is declared by the class attributes of `CheckpointerContract`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never

import pytest

from jianmu.errors import (
    CheckpointArgumentError,
    CheckpointError,
    CheckpointExistsError,
    CheckpointNotFoundError,
    JianmuError,
    LeaseLostError,
    ThreadBusyError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    HistoryCapable,
    JournalCapable,
    JournalRecord,
    LeaseCapable,
)

__all__ = ["HOSTILE_IDS", "CheckpointerContract", "CheckpointerHarness"]

Clock = Callable[[], float]

HOSTILE_IDS = (
    *("测试" * 60, "x" * 300, "y" * 100_000, "🙂", "\u00e9", "e\u0301", "\ufb01", "\u200b", "\ud800"),
    *(
        "Thread",
        "thread",
        "THREAD",
        "straße",
        "strasse",
        "ı",
        "i",
        "a.",
        "a ",
        " a",
        "a",
        ".",
        "..",
        "~",
        "-",
    ),
    *("line:U1", "CON", "con", "nul", "com1", "lpt9.txt", "aux.", "../up", "..\\up", "/etc/passwd", "a/b"),
    *(
        "a\\b",
        "a\x00b",
        "a",
        "a\nb",
        "a\r\nb",
        "a\tb",
        'a"b',
        "a'b",
        "a%b",
        "a_b",
        "a*b",
        "a?b",
        "<a>|",
        "$HOME",
    ),
    *(
        "%00",
        "a;DROP TABLE checkpoints",
        "{}",
        "[0]",
        "null",
        "1",
        "01",
        "1.0",
        "True",
        "t1",
        "t10",
        "t1\x7f",
    ),
    *("a\u2028b", "\ufeffa", "session-42.jsonl", "session-42.lock", "session-42"),
)
"""Thread ids that broke somebody's store."""

HARD_TEXTS = (
    "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh\r\ni\nj",
    "汉字😀 \x00 \x1f \x7f \ufeff \uffff",
    '"sum":"00000000"}',
    "\\u0000 \\ud800 \\\\ \\n",
    "",
    "' OR 1=1 --",
)
HARD_NUMBERS = (0, -1, 2**53 + 1, -(2**63) - 1, 2**80, 0.1, -0.0, 1e308, 5e-324, 1.0, True, False, None)


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


class CheckpointerContract(CheckpointerHarness):
    """Subclass it and define `make`; pytest finds the tests."""

    # Round trips

    def test_a_new_thread_has_no_checkpoint(self, store: CheckpointerProtocol) -> None:
        assert store.get_checkpoint("nobody") is None

    def test_the_newest_envelope_comes_back_equal(self, store: CheckpointerProtocol, home: Path) -> None:
        store.save_checkpoint("t", 1, {"n": 1})
        store.save_checkpoint("t", 2, {"n": 2}, {"0": "RUNNING", "0/1": "SUCCESS"}, {"count": 7})
        expected = {
            "step": 2,
            "state": {"n": 2},
            "tree": {"0": "RUNNING", "0/1": "SUCCESS"},
            "runtime_metadata": {"count": 7},
        }
        assert store.get_checkpoint("t") == expected
        assert self.again(store, home).get_checkpoint("t") == expected

    def test_a_run_without_tree_or_metadata_has_none_and_an_empty_dict(
        self, store: CheckpointerProtocol
    ) -> None:
        store.save_checkpoint("t", 0, {})
        assert store.get_checkpoint("t") == {"step": 0, "state": {}, "tree": None, "runtime_metadata": {}}

    def test_arguments_go_by_their_names_too(self, store: CheckpointerProtocol) -> None:
        store.save_checkpoint(
            thread_id="t", step=1, state_dump={"n": 1}, tree_state={"0": "SUCCESS"}, runtime_metadata={"m": 1}
        )
        envelope = store.get_checkpoint("t")
        assert envelope["tree"] == {"0": "SUCCESS"}
        assert envelope["runtime_metadata"] == {"m": 1}

    def test_hard_texts_and_numbers_come_back_equal_and_of_the_same_type(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        state = {
            "texts": list(HARD_TEXTS),
            "keys": {text: index for index, text in enumerate(HARD_TEXTS)},
            "numbers": list(HARD_NUMBERS),
            "nested": {"a": [[], {}, [{"b": [None]}]]},
        }
        store.save_checkpoint("t", 1, state, {"0": "RUNNING"}, copy.deepcopy(state))
        for reader in (store, self.again(store, home)):
            envelope = reader.get_checkpoint("t")
            assert exact(envelope["state"]) == exact(state)
            assert exact(envelope["runtime_metadata"]) == exact(state)

    def test_infinities_and_nan_come_back_as_they_were(self, store: CheckpointerProtocol, home: Path) -> None:
        store.save_checkpoint("t", 1, {"floats": [math.inf, -math.inf, math.nan]})
        high, low, nan = self.again(store, home).get_checkpoint("t")["state"]["floats"]
        assert (high, low) == (math.inf, -math.inf)
        assert math.isnan(nan)

    def test_keys_named_like_the_envelope_and_the_back_end_are_just_data(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        state = {
            key: {key: key} for key in ("step", "state", "tree", "thread", "format", "time", "sum", "id")
        }
        store.save_checkpoint("t", 1, state, None, state)
        envelope = self.again(store, home).get_checkpoint("t")
        assert envelope == {"step": 1, "state": state, "tree": None, "runtime_metadata": state}

    def test_a_state_that_shrinks_changes_kind_and_grows_again_comes_back(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        states: list[dict[str, Any]] = [
            {"a": [1, 2, 3], "b": {"x": 1, "y": {"z": []}}},
            {"a": [1, 2, 3, 4], "b": {"x": 1, "y": {"z": [1]}}},
            {"a": [1], "b": {"x": 1}},
            {"a": {"now": "a dict"}, "b": [1]},
            {"a": None},
            {},
            {"a": [True], "b": 0},
            {"a": [1], "b": 0.0},
            {"a": [1.0], "b": -0.0},
        ]
        for step, state in enumerate(states):
            store.save_checkpoint("t", step, state, {str(step): "RUNNING"}, {"step": step})
            for reader in (store, self.again(store, home)):
                envelope = reader.get_checkpoint("t")
                assert exact(envelope["state"]) == exact(state)
                assert envelope["tree"] == {str(step): "RUNNING"}
                assert envelope["runtime_metadata"] == {"step": step}

    def test_deep_nesting_is_kept_or_refused_and_the_last_good_step_stays(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        store.save_checkpoint("t", 1, {"n": 1})
        for depth in (50, 150, 240, 400, 3000):
            state = {"deep": nested(depth)}
            before = store.get_checkpoint("t")
            try:
                store.save_checkpoint("t", depth, state)
            except JianmuError:
                assert self.again(store, home).get_checkpoint("t") == before
            else:
                assert depth_of(self.again(store, home).get_checkpoint("t")["state"]["deep"]) == depth

    def test_a_value_that_cannot_be_stored_is_an_error_and_the_last_good_step_stays(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        if not self.durable:
            pytest.skip("a store in memory can hold any value")
        store.save_checkpoint("t", 1, {"n": 1})
        loop: list[Any] = []
        loop.append(loop)
        for bad in (object(), loop, threading_lock(), 1j):
            with pytest.raises(JianmuError):
                store.save_checkpoint("t", 2, {"ok": 1, "bad": bad})
            assert self.again(store, home).get_checkpoint("t")["state"] == {"n": 1}
        store.save_checkpoint("t", 2, {"n": 2})
        assert self.again(store, home).get_checkpoint("t")["state"] == {"n": 2}

    def test_what_is_changed_after_a_save_does_not_change_what_was_saved(
        self, store: CheckpointerProtocol
    ) -> None:
        state: dict[str, Any] = {"items": [1]}
        tree, metadata = {"0": "RUNNING"}, {"deep": {"list": [1]}}
        store.save_checkpoint("t", 1, state, tree, metadata)
        state["items"].append(2)
        tree["0"] = "FAILURE"
        metadata["deep"]["list"].append(2)
        envelope = store.get_checkpoint("t")
        assert envelope["state"] == {"items": [1]}
        assert envelope["tree"] == {"0": "RUNNING"}
        assert envelope["runtime_metadata"] == {"deep": {"list": [1]}}

    def test_what_is_changed_after_a_load_does_not_change_what_was_saved(
        self, store: CheckpointerProtocol
    ) -> None:
        store.save_checkpoint("t", 1, {"items": [1]}, {"0": "RUNNING"}, {"m": {"list": [1]}})
        first, second = store.get_checkpoint("t"), store.get_checkpoint("t")
        first["state"]["items"].append(9)
        first["tree"]["0"] = "FAILURE"
        first["runtime_metadata"]["m"]["list"].append(9)
        assert second["state"] == {"items": [1]}
        assert store.get_checkpoint("t") == second
        store.save_checkpoint("t", 2, {"items": [1, 2]}, {"0": "RUNNING"}, {"m": {"list": [1]}})
        assert store.get_checkpoint("t")["state"] == {"items": [1, 2]}

    # Thread ids

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

    # Order

    def test_a_step_is_never_rewritten(self, store: CheckpointerProtocol, home: Path) -> None:
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

    # History

    def filled(self, store: CheckpointerProtocol, thread_id: str = "t", steps: int = 5) -> HistoryCapable:
        """Save the steps 1, 3, 5 ... of a growing list, and return the store."""
        history = self.history(store)
        for index in range(steps):
            step = 2 * index + 1
            store.save_checkpoint(
                thread_id, step, state_at(step), {"0": "RUNNING", str(step): "SUCCESS"}, {"m": step}
            )
        return history

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

    # Journal

    def test_the_journal_keeps_the_last_answer_of_each_key_in_order(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        journal = self.journal(store)
        assert journal.read_journal("t") == []
        journal.append_journal("t", journal_record(1, value={"a": [1, "汉\u2028😀", None, 2**80]}))
        journal.append_journal("t", journal_record(2))
        journal.append_journal("t", journal_record(3))
        journal.append_journal("t", journal_record(2, value="again"))
        expected = [
            journal_record(1, value={"a": [1, "汉\u2028😀", None, 2**80]}),
            journal_record(3),
            journal_record(2, value="again"),
        ]
        assert journal.read_journal("t") == expected
        assert self.journal(self.again(store, home)).read_journal("t") == expected
        assert journal.read_journal("other") == []

    def test_every_part_of_a_journal_key_counts(self, store: CheckpointerProtocol) -> None:
        journal = self.journal(store)
        base = journal_record(1)
        records = [
            base,
            JournalRecord(**{**base, "run_id": "other"}),
            JournalRecord(**{**base, "path": "0/1/1"}),
            JournalRecord(**{**base, "activation": 99}),
            JournalRecord(**{**base, "key": "other"}),
        ]
        for record in records:
            journal.append_journal("t", record)
        assert journal.read_journal("t") == records

    def test_a_checkpoint_leaves_the_journal_and_trimming_replaces_it(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        journal = self.journal(store)
        for number in (1, 2, 3):
            journal.append_journal("t", journal_record(number))
        store.save_checkpoint("t", 1, {})
        assert len(journal.read_journal("t")) == 3
        journal.trim_journal("t", [journal_record(2)])
        assert journal.read_journal("t") == [journal_record(2)]
        journal.append_journal("t", journal_record(4))
        again = self.journal(self.again(store, home))
        assert again.read_journal("t") == [journal_record(2), journal_record(4)]
        journal.trim_journal("t", [])
        journal.trim_journal("t", [])
        assert again.read_journal("t") == []
        journal.append_journal("t", journal_record(5))
        assert again.read_journal("t") == [journal_record(5)]
        assert store.get_checkpoint("t")["step"] == 1

    def test_a_journal_alone_is_no_checkpoint(self, store: CheckpointerProtocol) -> None:
        self.journal(store).append_journal("t", journal_record(1))
        assert store.get_checkpoint("t") is None
        if isinstance(store, HistoryCapable):
            assert store.list_threads() == []

    # Leases

    def test_a_thread_has_one_holder_at_a_time(self, store: CheckpointerProtocol, home: Path) -> None:
        leases = self.leases(store)
        lease = leases.acquire("t")
        assert lease.thread_id == "t"
        assert lease.lost is False
        lease.renew()
        for other in (leases, self.leases(self.again(store, home))):
            started = time.monotonic()
            with pytest.raises(ThreadBusyError, match="'t'"):
                other.acquire("t")
            assert time.monotonic() - started < 5
        leases.acquire("neighbour").release()
        lease.release()
        lease.release()
        second = self.leases(self.again(store, home)).acquire("t")
        lease.release()
        with pytest.raises(ThreadBusyError):
            leases.acquire("t")
        second.release()
        leases.acquire("t").release()

    def test_only_the_holder_writes(self, store: CheckpointerProtocol, home: Path) -> None:
        if not self.durable:
            pytest.skip("a store in memory has one object, and that holds the lease")
        other = self.make(home)
        other.save_checkpoint("t", 1, {"by": "other"})
        lease = self.leases(store).acquire("t")
        store.save_checkpoint("t", 2, {"by": "holder"})
        with pytest.raises(ThreadBusyError, match="'t'"):
            other.save_checkpoint("t", 3, {"by": "other"})
        if isinstance(other, JournalCapable):
            with pytest.raises(ThreadBusyError, match="'t'"):
                other.append_journal("t", journal_record(1))
        assert other.get_checkpoint("t")["state"] == {"by": "holder"}
        other.save_checkpoint("neighbour", 1, {})
        lease.release()
        other.save_checkpoint("t", 3, {"by": "other"})
        assert store.get_checkpoint("t")["state"] == {"by": "other"}
        close(other)

    def test_a_late_save_does_not_bring_a_deleted_thread_back(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        lease = self.leases(store).acquire("t")
        store.save_checkpoint("t", 1, {"messages": ["old"]})
        other = self.again(store, home)
        assert self.history(other).delete_thread("t") is True
        with pytest.raises(LeaseLostError, match="'t'"):
            store.save_checkpoint("t", 2, {"messages": ["old", "late"]})
        if isinstance(store, JournalCapable):
            with pytest.raises(LeaseLostError, match="'t'"):
                store.append_journal("t", journal_record(1))
            assert store.read_journal("t") == []
        assert lease.lost is True
        assert other.get_checkpoint("t") is None
        assert self.history(other).list_threads() == []
        lease.release()
        second = self.leases(other).acquire("t")
        other.save_checkpoint("t", 1, {"messages": []})
        second.release()
        assert store.get_checkpoint("t")["state"] == {"messages": []}

    # Concurrency

    def test_threads_of_one_process_save_side_by_side(self, store: CheckpointerProtocol, home: Path) -> None:
        def work(number: int) -> None:
            for step in range(self.many_saves):
                store.save_checkpoint(f"t{number}", step, {"n": number, "items": list(range(step % 7))})
                assert store.get_checkpoint(f"t{number}")["step"] == step

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        reader = self.again(store, home)
        for number in range(4):
            envelope = reader.get_checkpoint(f"t{number}")
            assert (envelope["step"], envelope["state"]["n"]) == (self.many_saves - 1, number)
        if isinstance(reader, HistoryCapable):
            for number in range(4):
                steps = [info.step for info in reader.list_checkpoints(f"t{number}")]
                assert steps == list(range(self.many_saves - 1, -1, -1))

    def test_two_objects_race_on_one_thread_and_every_step_is_saved_once(self, home: Path) -> None:
        if not self.durable:
            pytest.skip("a store in memory has one object")
        stores = [self.make(home) for _ in range(2)]

        def work(index: int) -> list[int]:
            won = []
            for step in range(self.many_saves):
                try:
                    stores[index].save_checkpoint("t", step, {"by": index})
                except CheckpointExistsError:
                    continue
                won.append(step)
            return won

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            won = list(pool.map(work, range(2)))
        history = self.history(stores[0])
        saved = [info.step for info in history.list_checkpoints("t")]
        assert saved == sorted(won[0] + won[1], reverse=True)
        for index in range(2):
            for step in won[index][:5] + won[index][-5:]:
                envelope = history.get_checkpoint("t", step=step)
                assert envelope is not None
                assert envelope["state"] == {"by": index}
        for store in stores:
            close(store)

    def test_two_event_loops_one_after_the_other_share_one_object(self, store: CheckpointerProtocol) -> None:
        async def work(start: int) -> None:
            store.save_checkpoint("t", start, {"n": start})
            await asyncio.to_thread(store.save_checkpoint, "t", start + 1, {"n": start + 1})
            assert (await asyncio.to_thread(store.get_checkpoint, "t"))["step"] == start + 1

        asyncio.run(asyncio.wait_for(work(1), 20))
        asyncio.run(asyncio.wait_for(work(3), 20))
        assert store.get_checkpoint("t")["state"] == {"n": 4}

    def test_two_event_loops_in_two_threads_share_one_object(self, store: CheckpointerProtocol) -> None:
        async def work(number: int) -> None:
            for step in range(self.many_saves):
                await asyncio.to_thread(store.save_checkpoint, f"t{number}", step, {"n": step})

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda number: asyncio.run(work(number)), range(2)))
        for number in range(2):
            assert store.get_checkpoint(f"t{number}")["step"] == self.many_saves - 1
            if isinstance(store, HistoryCapable):
                assert len(store.list_checkpoints(f"t{number}")) == self.many_saves

    # Damage

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


def skip(store: object, capability: str) -> Never:
    """Skip a test for want of a capability."""
    pytest.skip(f"{type(store).__name__} is not {capability}")


def close(store: object) -> None:
    """Close a store that can be closed."""
    if isinstance(store, HistoryCapable):
        store.close()


def state_at(step: int) -> dict[str, Any]:
    """Return the state of a thread whose list grows by one item a step."""
    return {
        "n": step,
        "items": [{"role": "user", "content": f"message {index}"} for index in range(step)],
        "profile": {"name": "Ada", "seen": step // 4},
    }


def journal_record(number: int, value: Any = None) -> JournalRecord:
    """Return a record with a key of its own."""
    return JournalRecord(
        run_id="run", path="0/1", activation=1, key=f"key {number}", value=number if value is None else value
    )


def exact(value: Any) -> str:
    """Return a text that tells 1 from 1.0 and True."""
    return json.dumps(value, sort_keys=True)


def nested(depth: int) -> list[Any]:
    """Return lists in lists."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def depth_of(value: list[Any]) -> int:
    """Return how many lists are in each other."""
    depth = 1
    while value:
        value = value[0]
        depth += 1
    return depth


def threading_lock() -> object:
    """Return something that no format can hold."""
    return threading.Lock()
