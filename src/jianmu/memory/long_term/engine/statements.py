"""What every database runs for the tables: statements inside one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

__all__ = ["Statements", "marks", "parts"]

_LENGTHS = (1, 4, 16, 64, 128, 256, 400)
_AT_ONCE = _LENGTHS[-1]
"""Values in one IN list."""


class Statements(ABC):
    """Statements inside one transaction; `?` stands for a value."""

    @abstractmethod
    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of an answer."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""

    @abstractmethod
    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each tuple of values."""


def marks(values: Sequence[Any] | range) -> str:
    """So many question marks."""
    return ", ".join("?" * len(values))


def parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Values in lists that one IN can hold.

    The last value is repeated up to one of a few lengths, so that a database meets few different statements.
    """
    everything = list(values)
    for start in range(0, len(everything), _AT_ONCE):
        part = everything[start : start + _AT_ONCE]
        length = next(length for length in _LENGTHS if length >= len(part))
        yield part + part[-1:] * (length - len(part))
