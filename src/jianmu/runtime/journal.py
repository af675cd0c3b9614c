"""Answers of effects, kept from the moment they are there until a checkpoint makes them needless."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jianmu.memory.checkpoint.base import JournalRecord
from jianmu.runtime.store import ThreadStore

__all__ = ["Journal"]

_TRIM_AT = 64
"""Stale records are ignored, so they may gather a little; each trim is a write of its own."""


class Journal:
    """The answers of one run, by path, activation and key.

    Args:
        store: Where they are saved.
    """

    def __init__(self, store: ThreadStore) -> None:
        self._store = store
        self._run = ""
        self._records: dict[tuple[str, int, str], JournalRecord] = {}

    def begin(self, run: str) -> None:
        """Start empty.

        Args:
            run: What tells this run (and epoch) from others of the thread.
        """
        self._run = run
        self._records = {}

    async def load(self, run: str) -> None:
        """Start with what was saved by the same run."""
        self.begin(run)
        for record in await self._store.read_journal():
            if record["run_id"] == run:
                self._records[record["path"], record["activation"], record["key"]] = record

    def find(self, path: str, activation: int, key: str) -> tuple[bool, Any]:
        """Return whether there is an answer, and it."""
        record = self._records.get((path, activation, key))
        return (False, None) if record is None else (True, record["value"])

    async def append(self, path: str, activation: int, key: str, value: Any) -> None:
        """Save one answer; it is durable when this returns."""
        record = JournalRecord(run_id=self._run, path=path, activation=activation, key=key, value=value)
        self._records[path, activation, key] = record
        try:
            await self._store.append(record, list(self._records.values()))
        except Exception:  # whatever it is: unsaved means unknown
            del self._records[path, activation, key]
            raise

    @property
    def records(self) -> list[JournalRecord]:
        """All that are kept, in the order of writing."""
        return list(self._records.values())

    async def trim(self, has_ended: Callable[[str, int], bool], *, now: bool = False) -> None:
        """Drop the answers of ended activations; called after the checkpoint in which they ended is saved.

        Args:
            has_ended: Whether that path and activation ended in it.
            now: Do it for a single record, too.
        """
        stale = [place for place in self._records if has_ended(place[0], place[1])]
        if len(stale) < (1 if now or not self._store.has_journal else _TRIM_AT):
            return
        for place in stale:
            del self._records[place]
        await self._store.trim(self.records)
