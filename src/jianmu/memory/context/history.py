"""The conversation as a section: filtered, repaired, and cut in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jianmu.memory.context.counting import MessageCounter
from jianmu.memory.context.drafts import Fitted
from jianmu.memory.context.filters.base import Filter, RequestFilter, apply_filters
from jianmu.memory.context.pairs import Unit, flatten, pair, whole_units
from jianmu.memory.context.report import Change
from jianmu.memory.context.request import ContextRequest
from jianmu.memory.context.window import Outline, cut
from jianmu.messages import Message

__all__ = ["HistoryDraft"]


class HistoryDraft:
    """A history before its share is known.

    Args:
        messages: What the state has.
        filters: Applied in order, after repairs and before the cut.
        request: The request.
        block: The part of the share that is dropped at once.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        filters: Iterable[Filter | RequestFilter],
        request: ContextRequest,
        block: float,
    ) -> None:
        filters = tuple(filters)
        units, self._changes = pair(messages)
        units, repairs = whole_units(units, repair=True)
        self._changes += repairs
        if filters:
            units = self._filtered(units, filters, request)
        self._outline = Outline.of(units, _costs(units, request.counter))
        self._block = block

    def _filtered(
        self, units: Sequence[Unit], filters: tuple[Filter | RequestFilter, ...], request: ContextRequest
    ) -> list[Unit]:
        messages, removed = apply_filters(flatten(units), filters, request)
        self._changes += [Change("dropped", f"filter {name}", count) for name, count in removed]
        paired, orphans = pair(messages)
        whole, broken = whole_units(paired, repair=False)
        self._changes += [*orphans, *broken]
        return whole

    @property
    def head_cost(self) -> int:
        """Tokens of the system's messages and the summary at the head."""
        return self._outline.head_cost

    @property
    def newest_cost(self) -> int:
        """Tokens of the user's newest message."""
        return self._outline.newest_cost

    def fit(self, limit: int | None) -> Fitted:
        """Return the newest turns that cost at most `limit` tokens, with all that must stay."""
        units, costs = self._outline.units, self._outline.costs
        total = sum(costs)
        if limit is None or total <= limit:
            return Fitted(flatten(units), total, list(self._changes))
        window = cut(self._outline, limit, self._block)
        kept = window.keep(units)
        messages = flatten(kept)
        tokens = sum(costs[: window.head]) + sum(costs[window.start :])
        tokens += 0 if window.anchor is None else costs[window.anchor]
        gone = sum(len(unit.order) + 1 for unit in units) - len(messages)
        reason = f"{total} tokens do not fit into {limit}; the oldest go first, in blocks"
        return Fitted(messages, tokens, [*self._changes, Change("dropped", reason, gone, total - tokens)])


def _costs(units: Iterable[Unit], counter: MessageCounter) -> list[int]:
    count = counter.message
    return [count(u.head) + sum(map(count, u.order)) if u.order else count(u.head) for u in units]
