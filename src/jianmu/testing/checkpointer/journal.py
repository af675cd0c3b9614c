"""Answers kept between two checkpoints."""

from __future__ import annotations

from pathlib import Path

from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    HistoryCapable,
    JournalRecord,
)
from jianmu.testing.checkpointer.harness import CheckpointerHarness
from jianmu.testing.checkpointer.samples import journal_record

__all__ = ["JournalSuite"]


class JournalSuite(CheckpointerHarness):
    """What a `JournalCapable` back end does."""

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
