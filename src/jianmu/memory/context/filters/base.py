"""What a filter is, and how filters are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from jianmu.memory.context.marks import kind_of
from jianmu.memory.context.request import ContextRequest
from jianmu.messages import Message

__all__ = ["Filter", "RequestFilter", "apply_filters", "filter_name", "newest_user"]

Filter: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""A function from messages to messages. With an attribute ``everywhere = True`` it also sees what other
providers gave, one section at a time; without, the history only."""


@runtime_checkable
class RequestFilter(Protocol):
    """A filter that needs to know the request as well."""

    def apply(self, messages: Sequence[Message], request: ContextRequest) -> Sequence[Message]:
        """Return the messages to go on with."""
        ...


def filter_name(item: Filter | RequestFilter) -> str:
    """Return the name that the report gives a filter."""
    return getattr(item, "__name__", type(item).__name__)


def apply_filters(
    messages: Sequence[Message], filters: Iterable[Filter | RequestFilter], request: ContextRequest
) -> tuple[list[Message], list[tuple[str, int]]]:
    """Return the filtered messages, and for each filter that removed some its name and how many.

    The user's newest message cannot be filtered away: if a filter removes it, it is put back in its place.
    """
    current = list(messages)
    removed: list[tuple[str, int]] = []
    for item in filters:
        after = list(item.apply(current, request) if isinstance(item, RequestFilter) else item(current))
        after = _with_newest_user(current, after)
        if len(after) < len(current):
            removed.append((filter_name(item), len(current) - len(after)))
        current = after
    return current, removed


def newest_user(messages: Sequence[Message]) -> int | None:
    """Return the index of the user's newest message, or None."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and kind_of(messages[index]) != "summary":
            return index
    return None


def _with_newest_user(before: Sequence[Message], after: list[Message]) -> list[Message]:
    index = newest_user(before)
    if index is None:
        return after
    newest, later = before[index], {id(message) for message in before[index + 1 :]}
    place = next((i for i, message in enumerate(after) if id(message) in later), len(after))
    found = newest_user(after[:place])
    if found is not None:
        last = after[found]
        # A message that is none of the older ones is the newest in a new form: redacted, say.
        if last is newest or not any(last is older for older in before[:index]):
            return after
    return [*after[:place], newest, *after[place:]]
