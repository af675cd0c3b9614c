"""What is known of a message, kept for as long as the message lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from jianmu.messages import Message

__all__ = ["IdentityCache"]

T = TypeVar("T")


class IdentityCache(Generic[T]):
    """Values by message identity; an entry goes when its message does, so it never outgrows the history.

    Messages are frozen: the same object has the same tokens for ever. A value must not refer to its message.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Message], T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, message: Message) -> T | None:
        """Return the value kept for this very object, or None."""
        entry = self._entries.get(id(message))
        return entry[1] if entry is not None and entry[0]() is message else None

    def map(self, messages: Iterable[Message], make: Callable[[Message], T]) -> list[T]:
        """Return the value of each message, made where none is kept."""
        entries = self._entries
        values: list[T] = []
        for message in messages:
            entry = entries.get(id(message))
            known = entry is not None and entry[0]() is message
            values.append(entry[1] if entry is not None and known else self.set(message, make(message)))
        return values

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
