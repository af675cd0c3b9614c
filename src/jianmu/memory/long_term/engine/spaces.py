"""One namespace as the engine counts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jianmu.memory.long_term.engine.segments import Segment, unpack_segments

__all__ = ["SELECT_SPACE", "Space", "space_of"]

SELECT_SPACE = "SELECT id, path, items, slots, documents, words, epoch, segments FROM memory_space"


@dataclass(slots=True)
class Space:
    """One namespace and its counters.

    Attributes:
        items: Items ever stored; the next one's number.
        slots: Slots ever used; the next passage's slot.
        documents: Passages in the word index.
        words: Their summed length.
        epoch: Grows when slots are given anew.
        segments: Of the word index, oldest first.
    """

    id: int
    path: str
    items: int
    slots: int
    documents: int
    words: int
    epoch: int
    segments: list[Segment]

    def segment_of(self, slot: int) -> Segment | None:
        """The segment that holds the postings of a slot."""
        return next((one for one in reversed(self.segments) if one.start <= slot), None)


def space_of(row: Sequence[Any]) -> Space:
    """A row of `SELECT_SPACE`."""
    id, path, items, slots, documents, words, epoch, segments = row
    return Space(id, path, items, slots, documents, words, epoch, unpack_segments(bytes(segments)))
