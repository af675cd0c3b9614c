"""Which part of a history stays: its head, the newest turns, and the user's newest message.

The cut depends on how far the history exceeds its share, in whole blocks: it stands still for a block's
worth of new messages, so that the prompt's beginning stays the same and a provider's prompt cache holds.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from jianmu.memory.context.marks import is_pinned
from jianmu.memory.context.units import Paired, Unit

__all__ = ["Outline", "Window", "cut"]


@dataclass(frozen=True)
class Outline:
    """A history in units, and what of it must stay.

    Attributes:
        paired: The units and their costs.
        head: How many units at the beginning are pinned.
    """

    paired: Paired
    head: int

    @classmethod
    def of(cls, paired: Paired) -> Outline:
        """Find the pinned head."""
        units = paired.units
        return cls(paired, next((i for i, unit in enumerate(units) if not is_pinned(unit.head)), len(units)))

    @property
    def head_cost(self) -> int:
        """Tokens of the pinned head."""
        return sum(self.paired.costs[: self.head])

    @property
    def newest_cost(self) -> int:
        """Tokens of the user's newest message, 0 if there is none."""
        return self.paired.costs[self.paired.users[-1]] if self.paired.users else 0


@dataclass(frozen=True)
class Window:
    """What stays: the head, an anchor (the user's message of a turn that is cut), all units from `start`."""

    head: int
    anchor: int | None
    start: int

    def keep(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that stay, in order."""
        anchor = [] if self.anchor is None else [units[self.anchor]]
        return [*units[: self.head], *anchor, *units[self.start :]]


def cut(outline: Outline, share: int, block: float) -> Window:
    """Return the window of a history that may cost `share` tokens.

    Args:
        outline: The history; its head and newest user message must fit into `share`.
        share: Tokens.
        block: The part of the share that is dropped at once.
    """
    head, users, costs = outline.head, outline.paired.users, outline.paired.costs
    before = [0, *accumulate(costs[head:])]
    total, room = before[-1], share - outline.head_cost
    if total <= room:
        return Window(head, None, head)
    step = max(1, math.floor(room * block))
    least = total - room
    while True:
        start = head + bisect_left(before, math.ceil(least / step) * step)
        turn = bisect_right(users, min(start, len(costs)))
        anchor = users[turn - 1] if turn and users[turn - 1] != start else None
        cost = 0 if anchor is None else costs[anchor]
        if start >= len(costs):
            return Window(head, anchor, len(costs))
        if total - before[start - head] + cost <= room:
            return Window(head, anchor, start)
        # Within this turn the anchor needs so much room; the next turn needs no anchor of this one.
        next_turn = before[users[turn] - head] if turn < len(users) else total
        least = max(before[start - head + 1], min(next_turn, total + cost - room))
