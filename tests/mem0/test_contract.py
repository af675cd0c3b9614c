"""The contract of every long-term memory, over the real mem0 and each vector store that is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jianmu.memory.long_term.mem0 import Mem0LongTermMemory
from jianmu.testing.long_term_contract import LongTermMemoryContract

from .conftest import local_config, stores
from .server import Wire, serve


class Mem0Contract(LongTermMemoryContract):
    shareable = False
    store = ""

    @pytest.fixture(autouse=True)
    def _serve(self) -> Iterator[None]:
        with serve() as wire:
            self.wire: Wire = wire
            yield

    def make(self, folder: Path, *, clock: Callable[[], float]) -> Any:
        return Mem0LongTermMemory(local_config(self.wire, folder, self.store), infer=False)


class TestMem0OnQdrant(Mem0Contract):
    store = "qdrant"


if "chroma" in stores():

    class TestMem0OnChroma(Mem0Contract):
        store = "chroma"
