"""Tool calls and their results: one unit, kept or dropped together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jianmu.memory.context.marks import kind_of, mark
from jianmu.memory.context.report import Change
from jianmu.messages import Message, ToolCall

__all__ = ["INTERRUPTED", "Unit", "flatten", "interrupted", "pair", "whole_units"]

INTERRUPTED = (
    "[interrupted] The run ended before this call was answered; it may or may not have taken effect."
)


@dataclass
class Unit:
    """A message, or a message that calls tools with all its results.

    Attributes:
        head: The message, or the one that calls.
        results: One place for each call, in the calls' order; None while unanswered.
        order: The results as they came.
    """

    head: Message
    results: list[Message | None] = field(default_factory=list)
    order: list[Message] = field(default_factory=list)

    @property
    def messages(self) -> list[Message]:
        """The unit's messages in order."""
        return [self.head, *self.order]


def pair(messages: Iterable[Message]) -> tuple[list[Unit], list[Change]]:
    """Group a history into units; a result that comes late is moved to its call.

    A result answers the newest call of its id that came before it. Results that answer none, or one already
    answered, are left out; of a result and an "interrupted" that a repair made, the result stays.
    """
    units: list[Unit] = []
    callers: dict[str, Unit] = {}
    changes: list[Change] = []
    last: Unit | None = None
    for message in messages:
        if message.role != "tool":
            last = Unit(message)
            units.append(last)
            if message.tool_calls and message.role == "assistant":
                last.results = [None] * len(message.tool_calls)
                callers.update((call.id, last) for call in message.tool_calls)
            continue
        unit = None if message.tool_call_id is None else callers.get(message.tool_call_id)
        if unit is None:
            changes.append(Change("dropped", "a result whose call is not in the history"))
        else:
            changes += _answer(unit, message, moved=unit is not last)
    return units, changes


def _answer(unit: Unit, message: Message, *, moved: bool) -> list[Change]:
    place = _place(unit, message)
    if place is None:
        return [Change("dropped", "a second result for the same call")]
    before = unit.results[place]
    if before is not None:
        unit.order = [item for item in unit.order if item is not before]
    unit.results[place] = message
    unit.order.append(message)
    return [Change("moved", "a late result to its call")] if moved else []


def _place(unit: Unit, message: Message) -> int | None:
    """Return the first of the unit's calls that `message` can answer: not answered, or by a repair only."""
    for place, (call, result) in enumerate(zip(unit.head.tool_calls, unit.results, strict=True)):
        if call.id == message.tool_call_id and (result is None or kind_of(result) == "interrupted"):
            return place
    return None


def whole_units(units: Iterable[Unit], *, repair: bool) -> tuple[list[Unit], list[Change]]:
    """Make every call answered: by an "interrupted" result if `repair`, else by dropping the unit."""
    kept: list[Unit] = []
    changes: list[Change] = []
    for unit in units:
        if None not in unit.results:
            kept.append(unit)
        elif repair:
            changes.append(Change("added", "an interrupted result for a call never answered", _repair(unit)))
            kept.append(unit)
        else:
            changes.append(Change("dropped", "a call whose result a filter removed", len(unit.messages)))
    return kept, changes


def _repair(unit: Unit) -> int:
    missing = [place for place, result in enumerate(unit.results) if result is None]
    for place in missing:
        result = interrupted(unit.head.tool_calls[place])
        unit.results[place] = result
        unit.order.append(result)
    return len(missing)


def interrupted(call: ToolCall) -> Message:
    """Return the result of a call that the run did not live to answer."""
    return Message(
        role="tool",
        content=INTERRUPTED,
        tool_call_id=call.id,
        is_error=True,
        metadata=mark("interrupted"),
    )


def flatten(units: Sequence[Unit]) -> list[Message]:
    """Return the messages of units in order."""
    return [message for unit in units for message in unit.messages]
