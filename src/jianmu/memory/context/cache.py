"""What is known of a message, kept for as long as the message lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import is_
from typing import Generic, TypeVar

from jianmu.messages import Message

__all__ = ["IdentityCache", "PrefixMemo", "common_prefix"]

T = TypeVar("T")


class IdentityCache(Generic[T]):
    """Values by message identity; an entry goes when its message does, so it never outgrows the history.

    Messages are frozen: the same object has the same tokens for ever. A value must not refer to its message.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Message], T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, message: Message) -> bool:
        entry = self._entries.get(id(message))
        return entry is not None and entry[0]() is message

    def get(self, message: Message) -> T | None:
        """Return the value kept for this very object, or None."""
        entry = self._entries.get(id(message))
        return entry[1] if entry is not None and entry[0]() is message else None

    def set(self, message: Message, value: T) -> T:
        """Keep and return `value`."""
        key = id(message)
        entries = self._entries

        def forget(gone: weakref.ref[Message]) -> None:
            entry = entries.get(key)
            if entry is not None and entry[0] is gone:
                del entries[key]

        entries[key] = (weakref.ref(message, forget), value)
        return value


class PrefixMemo(Generic[T]):
    """A value per message of a history; of the next history only what is new is looked at.

    Args:
        make: Makes the value of a message.
    """

    def __init__(self, make: Callable[[Message], T]) -> None:
        self._make = make
        self._last: tuple[Sequence[Message], list[T]] = ((), [])

    def of(self, messages: Sequence[Message]) -> list[T]:
        """Return the values of `messages` in order; do not change the list."""
        seen, values = self._last
        same = common_prefix(seen, messages)
        values = [*values[:same], *map(self._make, messages[same:])]
        # One assignment, so that builds at the same time cannot mix two histories.
        self._last = (messages, values)
        return values


def common_prefix(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Return how many messages at the beginning are the same objects."""
    same = list(map(is_, one, other))
    return same.index(False) if False in same else len(same)
