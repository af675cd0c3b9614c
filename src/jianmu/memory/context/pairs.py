"""Which result answers which call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from jianmu.memory.context.cache import common_prefix
from jianmu.memory.context.report import Change
from jianmu.memory.context.units import Paired, Unit, is_users
from jianmu.messages import Message

__all__ = ["Pairing", "PairingCache"]

_ORPHAN = "a result whose call is not in the history"
_SECOND = "a second result for the same call"
_REPLACED = "an interrupted result that the call's own replaces"
_LATE = "a late result to its call"


class Pairing:
    """Groups a history into units; a longer history of the same messages is taken up where it was left.

    A result answers the newest call of its id that came before it, wherever it stands: one that comes late is
    moved to its call. Results that answer none, or one already answered, are left out.

    Args:
        cost: Tokens of a message.
    """

    def __init__(self, cost: Callable[[Message], int]) -> None:
        self._cost = cost
        self._clear()

    def _clear(self) -> None:
        self._seen: Sequence[Message] = ()
        self._units: list[Unit] = []
        self._costs: list[int] = []
        self._starts: list[int] = []
        self._users: list[int] = []
        self._open: set[int] = set()
        self._callers: dict[str, int] = {}
        self._changes: Counter[tuple[str, str]] = Counter()
        # Whether units still follow the history one by one, so that the last ones can be taken back.
        self._plain = True

    def of(self, messages: Sequence[Message]) -> Paired:
        """Return the history in units."""
        self._take_back(common_prefix(self._seen, messages))
        for index in range(len(self._seen), len(messages)):
            self._add(messages[index], index)
        self._seen = messages
        return Paired(
            list(self._units),
            list(self._costs),
            list(self._users),
            len(messages) - sum(n for (kind, _), n in self._changes.items() if kind == "dropped"),
            tuple(sorted(self._open)),
            [_change(kind, reason, n) for (kind, reason), n in self._changes.items()],
        )

    def _take_back(self, common: int) -> None:
        if common == len(self._seen):
            return
        if not self._plain:
            self._clear()
            return
        count = max(0, bisect_right(self._starts, common) - 1)
        for unit in self._units[count:]:
            for call in unit.head.tool_calls:
                self._callers.pop(call.id, None)
        self._seen = self._seen[: self._starts[count]] if count < len(self._starts) else ()
        del self._units[count:], self._costs[count:], self._starts[count:]
        del self._users[bisect_left(self._users, count) :]
        self._open = {index for index in self._open if index < count}

    def _add(self, message: Message, index: int) -> None:
        if message.role == "tool":
            self._answer(message)
            return
        place = len(self._units)
        if message.tool_calls and message.role == "assistant":
            self._units.append(Unit(message, (None,) * len(message.tool_calls)))
            self._open.add(place)
            self._plain = self._plain and not any(call.id in self._callers for call in message.tool_calls)
            self._callers.update((call.id, place) for call in message.tool_calls)
        else:
            self._units.append(Unit(message))
            if is_users(message):
                self._users.append(place)
        self._costs.append(self._cost(message))
        self._starts.append(index)

    def _answer(self, message: Message) -> None:
        place = self._callers.get(message.tool_call_id or "")
        before = None if place is None else self._units[place]
        after = None if before is None else before.answered(message)
        if place is None or before is None or after is None:
            self._note("dropped", _ORPHAN if place is None else _SECOND)
            return
        if len(after.results) == len(before.results):
            self._note("dropped", _REPLACED)
        if place != len(self._units) - 1:
            self._note("moved", _LATE)
        self._units[place] = after
        self._costs[place] = sum(map(self._cost, after.messages))
        if None not in after.answers:
            self._open.discard(place)

    def _note(self, kind: str, reason: str) -> None:
        self._plain = False
        self._changes[kind, reason] += 1


class PairingCache:
    """Pairings of the conversations built last, so that a build costs what is new in its history.

    Args:
        cost: Tokens of a message.
        size: How many conversations are kept.
    """

    def __init__(self, cost: Callable[[Message], int], size: int = 8) -> None:
        self._cost = cost
        self._size = size
        self._pairings: OrderedDict[object, Pairing] = OrderedDict()
        self._lock = Lock()

    def of(self, key: object, messages: Sequence[Message]) -> Paired:
        """Return the history of the conversation `key` in units."""
        with self._lock:
            pairing = self._pairings.get(key)
            if pairing is None:
                pairing = self._pairings[key] = Pairing(self._cost)
            self._pairings.move_to_end(key)
            while len(self._pairings) > self._size:
                self._pairings.popitem(last=False)
            return pairing.of(messages)


def _change(kind: str, reason: str, count: int) -> Change:
    return Change("moved" if kind == "moved" else "dropped", reason, count)
