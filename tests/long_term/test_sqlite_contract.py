"""SqliteLongTermMemory keeps the contract of every long-term memory, with words alone and with an
embedder."""

from collections.abc import Callable
from pathlib import Path

from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from jianmu.testing.long_term_contract import LongTermMemoryContract
from tests.long_term.embedders import hashed


class TestWordsAlone(LongTermMemoryContract):
    def make(self, folder: Path, *, clock: Callable[[], float]) -> SqliteLongTermMemory:
        return SqliteLongTermMemory(folder / "memory.db", embedder=None, clock=clock)


class TestWithAnEmbedder(LongTermMemoryContract):
    def make(self, folder: Path, *, clock: Callable[[], float]) -> SqliteLongTermMemory:
        return SqliteLongTermMemory(folder / "memory.db", embedder=hashed(), clock=clock)
