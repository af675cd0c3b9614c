"""The conversation as a section: repaired, filtered, and cut in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jianmu.memory.context.cache import IdentityCache
from jianmu.memory.context.clip import clip
from jianmu.memory.context.counting import MessageCounter
from jianmu.memory.context.drafts import Fitted
from jianmu.memory.context.filters.base import Filter, RequestFilter, apply_filters
from jianmu.memory.context.marks import marked
from jianmu.memory.context.pairs import PairingCache
from jianmu.memory.context.report import Change
from jianmu.memory.context.request import ContextRequest
from jianmu.memory.context.units import Paired
from jianmu.memory.context.window import Outline, cut
from jianmu.messages import Message

__all__ = ["HistoryDraft", "HistoryPreparer"]


# Tokens; a newest result is never made shorter than this, it is rather dropped.
_LEAST = 64

Clip = Callable[[Message, int], Message | None]


class HistoryPreparer:
    """Makes a history's draft; what it knows of a conversation it keeps for the next turn.

    Args:
        filters: Applied in order, after repairs and before the cut.
        counter: Counts messages.
        block: The part of the share that is dropped at once.
    """

    def __init__(
        self, filters: Sequence[Filter | RequestFilter], counter: MessageCounter, block: float
    ) -> None:
        self._filters = filters
        self._counter = counter
        self._block = block
        self._given = PairingCache(counter.message)
        self._filtered = PairingCache(counter.message)
        self._interrupted: IdentityCache[dict[int, Message]] = IdentityCache()
        self._clipped: IdentityCache[tuple[int, Message | None]] = IdentityCache()

    def draft(self, request: ContextRequest) -> HistoryDraft:
        """Return the draft of the request's messages."""
        paired = self._given.of(request.thread_id, request.messages)
        same = not paired.changes and not paired.pending
        paired = paired.repaired(self._counter.message, self._interrupted)
        if not self._filters:
            return HistoryDraft(paired, self._block, self._clip, self._counter.message)
        given = request.messages if same else paired.messages
        messages, removed = apply_filters(given, self._filters, request)
        filtered = self._filtered.of(request.thread_id, messages).whole()
        changes = [Change("dropped", f"filter {name}", count) for name, count in removed]
        paired = replace(filtered, changes=[*paired.changes, *changes, *filtered.changes])
        return HistoryDraft(paired, self._block, self._clip, self._counter.message)

    def _clip(self, message: Message, limit: int) -> Message | None:
        known = self._clipped.get(message)
        if known is None or known[0] != limit:
            part = clip(message, limit, self._counter, keep="both")
            known = self._clipped.set(message, (limit, None if part is None else marked(part, "shortened")))
        return known[1]


class HistoryDraft:
    """A history before its share is known.

    Args:
        paired: The history; every call answered.
        block: The part of the share that is dropped at once.
        clip: Shortens a result to so many tokens, or returns None.
        cost: Tokens of a message.
    """

    def __init__(self, paired: Paired, block: float, clip: Clip, cost: Callable[[Message], int]) -> None:
        self._paired = paired
        self._outline = Outline.of(paired)
        self._block = block
        self._clip = clip
        self._cost = cost

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
        paired = self._paired
        total = sum(paired.costs)
        if limit is None or total <= limit:
            return Fitted(paired.messages, total, list(paired.changes))
        paired = self._with_newest_results(limit)
        window = cut(Outline.of(paired), limit, self._block)
        messages = [message for unit in window.keep(paired.units) for message in unit.messages]
        tokens = sum(paired.costs[: window.head]) + sum(paired.costs[window.start :])
        tokens += 0 if window.anchor is None else paired.costs[window.anchor]
        changes = list(paired.changes)
        if paired.count > len(messages):
            reason = f"{total} tokens do not fit into {limit}; the oldest go first, in blocks"
            saved = sum(paired.costs) - tokens
            changes.append(Change("dropped", reason, paired.count - len(messages), saved))
        return Fitted(messages, tokens, changes)

    def _with_newest_results(self, limit: int) -> Paired:
        """Return the history with the newest results short enough to stay.

        Results that the model has not seen yet would otherwise be dropped, and it would call again.
        """
        paired, last = self._paired, len(self._paired.units) - 1
        unit = paired.units[last]
        if not unit.results or last < self._outline.head:
            return paired
        fixed = self.head_cost + self.newest_cost + paired.costs[last]
        if fixed <= limit:
            return paired
        costs = [self._cost(message) for message in unit.results]
        share = _share(costs, limit - fixed + sum(costs))
        if share < _LEAST:
            return paired
        parts = [m if c <= share else self._clip(m, share) for m, c in zip(unit.results, costs, strict=True)]
        results = tuple(part for part in parts if part is not None)
        if len(results) < len(parts):
            return paired
        saved = sum(costs) - sum(map(self._cost, results))
        count = sum(one is not other for one, other in zip(results, unit.results, strict=True))
        change = Change("cut", "the newest results are longer than the history may be", count, saved)
        return replace(
            paired,
            units=[*paired.units[:last], replace(unit, results=results)],
            costs=[*paired.costs[:last], paired.costs[last] - saved],
            changes=[*paired.changes, change],
        )


def _share(costs: Sequence[int], room: int) -> int:
    """Return the most that each may cost so that all together cost at most `room`."""
    left = room
    for place, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - place)
        if cost > share:
            return share
        left -= cost
    return max(costs)
