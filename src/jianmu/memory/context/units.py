"""A history in units: each message by itself, or a message that calls tools with all its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from jianmu.memory.context.cache import IdentityCache
from jianmu.memory.context.marks import is_pinned, kind_of, mark
from jianmu.memory.context.report import Change
from jianmu.messages import Message, ToolCall

__all__ = ["INTERRUPTED", "Paired", "Unit", "is_users"]

INTERRUPTED = (
    "[interrupted] The run ended before this call was answered; it may or may not have taken effect."
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A message, or a message that calls tools with all its results.

    Attributes:
        head: The message, or the one that calls.
        answers: For each call its result, or None while unanswered.
        results: The results in the order they came.
    """

    head: Message
    answers: tuple[Message | None, ...] = ()
    results: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The unit's messages in order."""
        return (self.head, *self.results)

    def answered(self, message: Message) -> Unit | None:
        """Return the unit with one more result, or None if it answers nothing that is open.

        A result takes the place of an "interrupted" that a repair made.
        """
        for place, (call, answer) in enumerate(zip(self.head.tool_calls, self.answers, strict=True)):
            if call.id == message.tool_call_id and (answer is None or kind_of(answer) == "interrupted"):
                answers = (*self.answers[:place], message, *self.answers[place + 1 :])
                kept = tuple(result for result in self.results if result is not answer)
                return Unit(self.head, answers, (*kept, message))
        return None

    def repaired(self, kept: IdentityCache[dict[int, Message]]) -> Unit:
        """Return the unit with an "interrupted" result for each call that has none; the same each time."""
        known = kept.get(self.head)
        made = kept.set(self.head, {}) if known is None else known
        for place, (call, answer) in enumerate(zip(self.head.tool_calls, self.answers, strict=True)):
            if answer is None and place not in made:
                made[place] = interrupted(call)
        added = tuple(made[place] for place, answer in enumerate(self.answers) if answer is None)
        return Unit(self.head, self.answers, (*self.results, *added))


def interrupted(call: ToolCall) -> Message:
    """Return the result of a call that the run did not live to answer."""
    return Message(
        role="tool", content=INTERRUPTED, tool_call_id=call.id, is_error=True, metadata=mark("interrupted")
    )


@dataclass(frozen=True)
class Paired:
    """A history in units.

    Attributes:
        units: The units in order.
        costs: Tokens of each.
        users: Indices of the user's messages.
        count: Number of messages.
        pending: Indices of the units with an unanswered call.
        changes: What was dropped or moved.
    """

    units: list[Unit]
    costs: list[int]
    users: list[int]
    count: int
    pending: tuple[int, ...] = ()
    changes: list[Change] = field(default_factory=list)

    @property
    def messages(self) -> list[Message]:
        """All messages in order."""
        return list(chain.from_iterable(unit.messages for unit in self.units))

    def repaired(self, cost: Callable[[Message], int], kept: IdentityCache[dict[int, Message]]) -> Paired:
        """Return the history with every call answered, by an "interrupted" result if need be.

        Args:
            cost: Tokens of a message.
            kept: The "interrupted" results made before, by place, for the messages that call.
        """
        if not self.pending:
            return self
        units, costs, added = list(self.units), list(self.costs), 0
        for index in self.pending:
            units[index] = units[index].repaired(kept)
            added += len(units[index].results) - len(self.units[index].results)
            costs[index] = sum(map(cost, units[index].messages))
        tokens = sum(costs) - sum(self.costs)
        change = Change("added", "an interrupted result for a call never answered", added, -tokens)
        changes = [*self.changes, change]
        return Paired(units, costs, self.users, self.count + added, changes=changes)

    def whole(self) -> Paired:
        """Return the history without units whose calls are not all answered."""
        if not self.pending:
            return self
        gone = set(self.pending)
        kept = [index for index in range(len(self.units)) if index not in gone]
        users = [place for place, index in enumerate(kept) if is_users(self.units[index].head)]
        lost = sum(1 + len(self.units[index].results) for index in gone)
        tokens = sum(self.costs[index] for index in gone)
        change = Change("dropped", "a call whose result a filter removed", lost, tokens)
        return Paired(
            [self.units[index] for index in kept],
            [self.costs[index] for index in kept],
            users,
            self.count - lost,
            changes=[*self.changes, change],
        )


def is_users(message: Message) -> bool:
    """Tell whether the user said this; a summary that stands in the user's role is not theirs."""
    return message.role == "user" and not is_pinned(message)
