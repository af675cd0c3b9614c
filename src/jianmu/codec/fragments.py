"""JSON text kept in pieces, so that a list that grows is never encoded twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import from_json, to_json

__all__ = ["Fragment", "ListFragment", "ListText", "parse"]

BLOCK = 256


def parse(text: bytes) -> Any:
    """Return the plain data that `text`, written by `to_json`, stands for."""
    return from_json(text, allow_inf_nan=False, cache_strings="keys")


class Fragment:
    """The JSON text of one value; immutable.

    Args:
        text: Compact UTF-8 JSON.
    """

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def plain(self) -> Any:
        """Return freshly built plain data."""
        return parse(self.text)

    def pieces(self) -> Iterable[bytes]:
        """Return the text in pieces to join."""
        return (self.text,)


class ListText:
    """The JSON text of a list that only grows: full blocks of items, then the items of a tail.

    A tail is only ever appended to and, once it has become a block, replaced; a `ListFragment` that holds an
    old tail and a length therefore never changes.
    """

    __slots__ = ("_blocks", "_tail", "length")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._tail: list[bytes] = []
        self.length = 0

    def extend(self, texts: Iterable[bytes]) -> None:
        """Add the texts of further items."""
        for text in texts:
            self._tail.append(text)
            self.length += 1
            if len(self._tail) == BLOCK:
                self._blocks.append(b",".join(self._tail))
                self._tail = []

    def freeze(self) -> ListFragment:
        """Return the list as it is now; costs the same for any length."""
        return ListFragment(self, self._blocks, self._tail, self.length)


class ListFragment:
    """A `ListText` at one moment; immutable, though it shares the growing text.

    Args:
        origin: The growing text, by whose identity two moments of one list are recognised.
        blocks: Its blocks; those of this moment are the first ``length // BLOCK``.
        tail: Its tail at this moment; the first ``length % BLOCK`` items belong to it.
        length: How many items it has.
    """

    __slots__ = ("_blocks", "_tail", "length", "origin")

    def __init__(self, origin: ListText, blocks: list[bytes], tail: list[bytes], length: int) -> None:
        self.origin = origin
        self._blocks = blocks
        self._tail = tail
        self.length = length

    def plain(self) -> list[Any]:
        """Return freshly built plain data."""
        return self.items_from(0)

    def pieces(self) -> Iterable[bytes]:
        """Return the text in pieces to join."""
        separator = b"["
        for piece in self._pieces_from(0):
            yield separator
            yield piece
            separator = b","
        yield b"]" if self.length else b"[]"

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the text in chunks of about `size` bytes, each the text of items with commas between."""
        chunk: list[bytes] = []
        room = size
        for piece in self._pieces_from(0):
            chunk.append(piece)
            room -= len(piece)
            if room <= 0:
                yield b",".join(chunk)
                chunk, room = [], size
        if chunk:
            yield b",".join(chunk)

    def items_from(self, start: int) -> list[Any]:
        """Return the plain data of the items from `start` on; costs these items.

        Those that have just filled a block cost that block.
        """
        first = start // BLOCK
        if first == self.length // BLOCK:
            tail = self._tail[start % BLOCK : self.length % BLOCK]
            return list(parse(b"[%b]" % b",".join(tail)))
        items: list[Any] = parse(b"[%b]" % b",".join(self._pieces_from(first)))
        return items[start - first * BLOCK :]

    def text_from(self, start: int) -> bytes:
        """Return the text of the items from `start` on, with commas between; costs these items.

        Those that have just filled a block cost that block.
        """
        first = start // BLOCK
        if first == self.length // BLOCK:
            return b",".join(self._tail[start % BLOCK : self.length % BLOCK])
        return b",".join([to_json(item) for item in self.items_from(start)])

    def _pieces_from(self, block: int) -> list[bytes]:
        pieces = self._blocks[block : self.length // BLOCK]
        pieces.extend(self._tail[: self.length % BLOCK])
        return pieces
