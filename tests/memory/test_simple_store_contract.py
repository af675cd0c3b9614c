"""SimpleStore keeps the contract of every long-term memory."""

from collections.abc import Callable
from pathlib import Path

from jianmu.memory import SimpleStore
from jianmu.testing.long_term_contract import LongTermMemoryContract


class TestSimpleStore(LongTermMemoryContract):
    def make(self, folder: Path, *, clock: Callable[[], float]) -> SimpleStore:
        return SimpleStore(folder / "store.json")
