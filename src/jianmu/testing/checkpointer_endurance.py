"""The long tests of a checkpointer, a suite of its own so that it can be marked slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jianmu.memory.checkpoint.base import CheckpointerProtocol, HistoryCapable
from jianmu.testing.checkpointer.harness import CheckpointerHarness
from jianmu.testing.checkpointer.samples import journal_record, state_at

__all__ = ["CheckpointerEndurance"]


class CheckpointerEndurance(CheckpointerHarness):
    """Subclass it like `CheckpointerContract`.

    Attributes:
        big_state: Bytes of text in the big state.
        many_steps: Steps of the long thread.
    """

    big_state = 50_000_000
    many_steps = 10_000

    def test_a_big_state_comes_back(self, store: CheckpointerProtocol, home: Path) -> None:
        """The state is one text, then many; both come back, and so does the small step after them."""
        piece = "汉字 0123456789 " * 64
        count = self.big_state // len(piece.encode())
        states: list[dict[str, Any]] = [{"text": piece * count}, {"items": [piece] * count}, {"n": 1}]
        for step, state in enumerate(states):
            store.save_checkpoint("t", step, state)
            assert self.again(store, home).get_checkpoint("t")["state"] == state
        if isinstance(store, HistoryCapable):
            envelope = store.get_checkpoint("t", step=0)
            assert envelope is not None
            assert envelope["state"] == states[0]

    def test_many_steps_are_kept_and_found(self, store: CheckpointerProtocol, home: Path) -> None:
        """A thread goes through many steps; old, middle and new ones are found, also after pruning."""
        for step in range(self.many_steps):
            store.save_checkpoint("t", step, {"n": step, "recent": state_at(step % 50)}, {"0": "RUNNING"})
        reader = self.again(store, home)
        assert reader.get_checkpoint("t")["state"]["n"] == self.many_steps - 1
        history = self.history(reader)
        kept = [info.step for info in history.list_checkpoints("t")]
        assert kept == list(range(self.many_steps - 1, self.many_steps - 1 - len(kept), -1))
        for step in (kept[-1], kept[len(kept) // 2], kept[0]):
            envelope = history.get_checkpoint("t", step=step)
            assert envelope is not None
            assert envelope["state"] == {"n": step, "recent": state_at(step % 50)}
        assert history.prune("t", keep_last=10) == len(kept) - 10
        assert self.again(store, home).get_checkpoint("t")["state"]["n"] == self.many_steps - 1

    def test_a_long_journal_is_kept(self, store: CheckpointerProtocol, home: Path) -> None:
        """A thousand answers within one tick."""
        journal = self.journal(store)
        records = [journal_record(number) for number in range(1000)]
        for record in records:
            journal.append_journal("t", record)
        assert self.journal(self.again(store, home)).read_journal("t") == records
