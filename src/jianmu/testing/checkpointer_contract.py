"""The tests that every checkpointer passes.

A third party's back end is tested in five lines::

    from jianmu.testing import CheckpointerContract

    class TestMyCheckpointer(CheckpointerContract):
        def make(self, home):
            return MyCheckpointer(home / "checkpoints.db")

What a back end can do beyond its two methods is found with `isinstance` on the protocols of
`jianmu.memory.checkpoint.base`; a test of what it cannot do is skipped and says so. What cannot be found out
is declared by the class attributes of `CheckpointerHarness`.
"""

from __future__ import annotations

from jianmu.testing.checkpointer.concurrency import ConcurrencySuite
from jianmu.testing.checkpointer.damage import DamageSuite
from jianmu.testing.checkpointer.harness import CheckpointerHarness, Clock, close
from jianmu.testing.checkpointer.history import HistorySuite
from jianmu.testing.checkpointer.journal import JournalSuite
from jianmu.testing.checkpointer.leases import LeaseSuite
from jianmu.testing.checkpointer.model import ModelSuite
from jianmu.testing.checkpointer.prompt import PromptSaveSuite
from jianmu.testing.checkpointer.round_trips import RoundTripSuite
from jianmu.testing.checkpointer.samples import HOSTILE_IDS, journal_record, state_at
from jianmu.testing.checkpointer.thread_ids import ThreadIdSuite

__all__ = [
    "HOSTILE_IDS",
    "CheckpointerContract",
    "CheckpointerHarness",
    "Clock",
    "close",
    "journal_record",
    "state_at",
]


class CheckpointerContract(
    RoundTripSuite,
    ThreadIdSuite,
    HistorySuite,
    ModelSuite,
    JournalSuite,
    LeaseSuite,
    ConcurrencySuite,
    PromptSaveSuite,
    DamageSuite,
):
    """Subclass it and define `make`; what else may be declared is in `CheckpointerHarness`."""
