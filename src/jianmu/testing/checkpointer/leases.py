"""One writer per thread."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jianmu.errors import (
    LeaseLostError,
    ThreadBusyError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    JournalCapable,
)
from jianmu.testing.checkpointer.harness import CheckpointerHarness, close
from jianmu.testing.checkpointer.samples import journal_record

__all__ = ["LeaseSuite"]


class LeaseSuite(CheckpointerHarness):
    """What a `LeaseCapable` back end does."""

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
