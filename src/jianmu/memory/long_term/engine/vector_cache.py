"""The vectors of the namespaces searched last, kept in memory and up to date."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jianmu.memory.long_term.engine.tables import Space

if TYPE_CHECKING:
    from jianmu.retrieval.vectors import VectorIndex

__all__ = ["VectorCache"]


class VectorCache:
    """One index a space; the least recently searched goes first.

    Vectors never change and slots are never used twice, so an index is brought up to date by adding what lies
    above its last slot; what was removed is noticed when a search meets it. Hold `lock` while using an index.

    Args:
        limit: Bytes that all indexes together may take; the one in use may exceed it.
    """

    def __init__(self, limit: int) -> None:
        self.lock = threading.RLock()
        self._limit = limit
        self._indexes: OrderedDict[int, tuple[int, VectorIndex]] = OrderedDict()

    def of(self, space: Space, dimension: int) -> VectorIndex:
        """The index of a space, empty when there is none or it is outdated."""
        from jianmu.retrieval.vectors import VectorIndex

        epoch, index = self._indexes.get(space.id, (-1, None))
        stale = index is None or epoch != space.epoch or index.dimension != dimension
        if index is None or stale or index.removed > 1_000 + index.rows // 4:
            index = VectorIndex(dimension)
        self._indexes[space.id] = (space.epoch, index)
        self._indexes.move_to_end(space.id)
        return index

    def forget(self, space: Space, slots: Sequence[int]) -> None:
        """Never return these slots again."""
        with self.lock:
            if space.id in self._indexes:
                self._indexes[space.id][1].mark_removed(slots)

    def trim(self) -> None:
        """Keep to the limit; the index used last stays."""
        total = sum(index.size for _, index in self._indexes.values())
        while total > self._limit and len(self._indexes) > 1:
            total -= self._indexes.popitem(last=False)[1][1].size

    def clear(self) -> None:
        """Give the memory back."""
        with self.lock:
            self._indexes.clear()
