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

from jianmu.memory.context.marks import is_pinned, kind_of
from jianmu.memory.context.pairs import Unit

__all__ = ["Outline", "Window", "cut"]


@dataclass(frozen=True)
class Outline:
    """A history's units, their costs, and what of them must stay.

    Attributes:
        units: The units in order.
        costs: Tokens of each.
        head: How many units at the beginning are pinned.
        users: Indices of the user's messages after the head.
    """

    units: Sequence[Unit]
    costs: Sequence[int]
    head: int
    users: Sequence[int]

    @classmethod
    def of(cls, units: Sequence[Unit], costs: Sequence[int]) -> Outline:
        """Find the pinned head and the user's messages."""
        head = next((i for i, unit in enumerate(units) if not is_pinned(unit.head)), len(units))
        users = [
            i
            for i in range(head, len(units))
            if units[i].head.role == "user" and kind_of(units[i].head) != "summary"
        ]
        return cls(units, costs, head, users)

    @property
    def head_cost(self) -> int:
        """Tokens of the pinned head."""
        return sum(self.costs[: self.head])

    @property
    def newest_cost(self) -> int:
        """Tokens of the user's newest message, 0 if there is none."""
        return self.costs[self.users[-1]] if self.users else 0


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
    head, users = outline.head, outline.users
    before = [0, *accumulate(outline.costs[head:])]
    total, room = before[-1], share - outline.head_cost
    if total <= room:
        return Window(head, None, head)
    step = max(1, math.floor(room * block))
    least = total - room
    while True:
        start = head + bisect_left(before, math.ceil(least / step) * step)
        turn = bisect_right(users, min(start, len(outline.units)))
        anchor = users[turn - 1] if turn and users[turn - 1] != start else None
        cost = 0 if anchor is None else outline.costs[anchor]
        if start >= len(outline.units):
            return Window(head, anchor, len(outline.units))
        if total - before[start - head] + cost <= room:
            return Window(head, anchor, start)
        # Within this turn the anchor needs so much room; the next turn needs no anchor of this one.
        next_turn = before[users[turn] - head] if turn < len(users) else total
        least = max(before[start - head + 1], min(next_turn, total + cost - room))
