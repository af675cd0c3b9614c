"""What this process last saved of each thread: the base of the next delta."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from jianmu.memory.checkpoint.content import Content

__all__ = ["DeltaCache", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread stands.

    Attributes:
        incarnation: The thread row's number.
        step: Its newest step, -1 for none.
        base: The step of the newest snapshot.
        snapshot: Bytes of that snapshot.
        deltas: Bytes of the deltas since, with a charge for each row.
        content: What the newest step holds.
        tail: The JSON texts of the deltas that no bundle repeats yet.
        tail_after: The step before the first of them.
    """

    incarnation: int
    step: int
    base: int
    snapshot: int
    deltas: int
    content: Content
    tail: tuple[bytes, ...]
    tail_after: int


class DeltaCache:
    """Keeps the places used last, within a budget; thread-safe.

    Args:
        budget: Bytes of stored form to keep in all; the place used last is always kept.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._places: OrderedDict[bytes, Place] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Place | None:
        """Return the place of a thread, if it is known."""
        with self._lock:
            return self._places.get(key)

    def put(self, key: bytes, place: Place) -> None:
        """Remember where a thread stands."""
        with self._lock:
            self._drop(key)
            self._places[key] = place
            self._size += _size(place)
            while self._size > self._budget and len(self._places) > 1:
                self._drop(next(iter(self._places)))

    def forget(self, key: bytes) -> None:
        """Drop what is known of a thread."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        place = self._places.pop(key, None)
        if place is not None:
            self._size -= _size(place)


def _size(place: Place) -> int:
    return place.snapshot + place.deltas + 1024
