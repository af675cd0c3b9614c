"""What every part of the contract needs: a memory to test, and a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jianmu.memory.long_term.base import LongTermMemoryRetrieved, Namespace
from jianmu.memory.long_term.capabilities import CAPABILITIES, capabilities_of

__all__ = ["FakeClock", "Support"]


class FakeClock:
    """A clock that stands still until it is told to move; seconds since 1970, as `time.time`."""

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time it is."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move on."""
        self.now += seconds


class Support:
    """How a contract gets its memory; the attributes and `make` are what a back end overrides.

    Attributes:
        shareable: Two instances over the same folder see each other's writes at once.
        needs_key: `record` without a key is a ValueError (instead of the capability "write.keyless").
    """

    shareable: bool = True

    def make(self, folder: Path, *, clock: Callable[[], float]) -> Any:
        """Return a back end that keeps its data in `folder`; the same folder must mean the same data."""
        raise NotImplementedError("override make(folder, *, clock)")

    def reopen(self, memory: Any, folder: Path, *, clock: Callable[[], float]) -> Any:
        """Close `memory` and return a new one over the same data, as a new process would."""
        self.close(memory)
        return self.make(folder, clock=clock)

    def close(self, memory: Any) -> None:
        """Close `memory` if it can be closed."""
        close = getattr(memory, "close", None)
        if close is not None:
            close()

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The time the back end sees."""
        return FakeClock()

    @pytest.fixture
    def memory(self, tmp_path: Path, clock: FakeClock) -> Iterator[Any]:
        """An empty memory."""
        memory = self.make(tmp_path, clock=clock)
        yield memory
        self.close(memory)

    def has(self, memory: Any, capability: str) -> bool:
        """Whether `memory` names `capability`."""
        assert capability in CAPABILITIES
        return capability in capabilities_of(memory)

    def needs(self, memory: Any, capability: str) -> None:
        """Skip the test unless `memory` names `capability`."""
        if not self.has(memory, capability):
            pytest.skip(f"{type(memory).__name__} does not offer {capability}")

    @staticmethod
    def contents(retrieved: LongTermMemoryRetrieved) -> list[str]:
        """The texts of hits, in their order."""
        return [hit["content"] for hit in retrieved]

    def kept(self, memory: Any, text: str, query: str, namespace: Namespace = ()) -> bool:
        """Whether a search for `query` gives exactly `text` back."""
        return text in self.contents(memory.retrieve(query, limit=20, namespace=namespace))
