"""The word index on disk: postings in segments, small ones merged into larger ones.

A write appends one segment, whose slots lie above those of every segment before it. When seven segments of a
size (each size being eight times the one below) stand at the end, the next one takes them in, so that a
posting is rewritten a few times in its life and a search looks into a few dozen segments at most: the
log-structured merge of O'Neil et al. (1996). What grew beyond `_LARGEST` postings is left alone, which bounds
the longest pause of a write.

Inside a segment the terms are sorted and packed into rows of about a page. A row is ``length of the names
(uint32), NUL name NUL name ... NUL, the end of each name's postings (uint32 each), postings``. A term with
more postings than fit has rows of its own, each keyed by its first slot.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

from jianmu.errors import MemoryCorruptError
from jianmu.retrieval.bm25 import POSTING_SIZE, remove

__all__ = [
    "LAST",
    "PostingRow",
    "Segment",
    "absorbed",
    "damage_named",
    "pack_rows",
    "pack_segments",
    "postings_in",
    "unpack_row",
    "unpack_segments",
    "without",
]

LAST = 2**32
"""Above every slot."""

_ROW = 4_400
_CHUNK = 1_064 * POSTING_SIZE  # both fill SQLite's overflow pages
_LARGEST = 2**21
_TOGETHER = 7
_COUNT = struct.Struct("<I")
_SEGMENT = struct.Struct("<III")

PostingRow = tuple[str, int, bytes]
"""The first term of a row, its first slot (0 unless the term has several rows), the packed row."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Postings written together.

    Attributes:
        start: The first slot.
        postings: How many there were when it was written.
        rows: How many rows they took.
    """

    start: int
    postings: int
    rows: int


def pack_segments(segments: Iterable[Segment]) -> bytes:
    """The list of segments as it is stored with the space."""
    return b"".join(_SEGMENT.pack(one.start, min(one.postings, LAST - 1), one.rows) for one in segments)


def unpack_segments(packed: bytes) -> list[Segment]:
    """The reverse of `pack_segments`."""
    return [Segment(*values) for values in _SEGMENT.iter_unpack(packed)]


def absorbed(segments: Sequence[Segment], postings: int) -> int:
    """From which segment on a new one of so many postings takes the older ones in."""
    first = len(segments)
    while True:
        level, at = _level(postings), first
        while at and _level(segments[at - 1].postings) < level and segments[at - 1].postings < _LARGEST:
            at -= 1
        equal = at
        while (
            equal
            and _level(segments[equal - 1].postings) == level
            and segments[equal - 1].postings < _LARGEST
        ):
            equal -= 1
        if at - equal >= _TOGETHER:
            at = equal
        if at == first:
            return first
        postings += sum(one.postings for one in segments[at:first])
        first = at


def pack_rows(postings: Mapping[str, bytes]) -> Iterator[PostingRow]:
    """Rows of one segment, in order of their keys."""
    names: list[str] = []
    parts: list[bytes] = []
    size = 0
    for term in sorted(postings):
        entries = postings[term]
        own = len(term) + len(entries) + 5
        if names and size + own > _ROW:
            yield names[0], 0, _pack(names, parts)
            names, parts, size = [], [], 0
        if len(entries) > _CHUNK:
            for start in range(0, len(entries), _CHUNK):
                chunk = entries[start : start + _CHUNK]
                yield term, _COUNT.unpack_from(chunk)[0] if start else 0, _pack([term], [chunk])
            continue
        names.append(term)
        parts.append(entries)
        size += own
    if names:
        yield names[0], 0, _pack(names, parts)


@contextmanager
def damage_named() -> Iterator[None]:
    """What a damaged row of the index raises, with what to do.

    Raises:
        MemoryCorruptError: Instead of it.
    """
    try:
        yield
    except (struct.error, ValueError, IndexError) as error:
        raise MemoryCorruptError(
            "the word index is damaged; the texts are kept apart from it: call reindex()"
        ) from error


def unpack_row(row: bytes) -> dict[str, bytes]:
    """Every term of a row with its postings."""
    names, ends, body = _parts(row)
    starts = (0, *ends[:-1])
    texts = row[_COUNT.size + 1 : names - 1].decode().split("\0")
    return {
        name: row[body + start : body + end] for name, start, end in zip(texts, starts, ends, strict=True)
    }


def postings_in(row: bytes, term: str) -> bytes:
    """The postings of one term in a row; empty when it is not there."""
    names = _names_end(row)
    at = row.find(b"\0" + term.encode() + b"\0", _COUNT.size, names)
    if at < 0:
        return b""
    number = row.count(b"\0", _COUNT.size, at)
    body = names + _COUNT.size * (row.count(b"\0", at, names) + number - 1)
    start = _COUNT.unpack_from(row, names + _COUNT.size * (number - 1))[0] if number else 0
    return row[body + start : body + _COUNT.unpack_from(row, names + _COUNT.size * number)[0]]


def without(row: bytes, terms: Iterable[str], slot: int) -> tuple[str, bytes] | None:
    """A row without the postings of a slot: its first term and itself, or None when nothing is left."""
    postings = unpack_row(row)
    for term in terms:
        if term in postings and not (left := remove(postings[term], slot)):
            del postings[term]
        elif term in postings:
            postings[term] = left
    if not postings:
        return None
    return next(iter(postings)), _pack(list(postings), list(postings.values()))


def _pack(names: Sequence[str], parts: Sequence[bytes]) -> bytes:
    texts = ("\0" + "\0".join(names) + "\0").encode()
    ends = struct.pack(f"<{len(parts)}I", *accumulate(map(len, parts)))
    return b"".join((_COUNT.pack(len(texts)), texts, ends, *parts))


def _parts(row: bytes) -> tuple[int, tuple[int, ...], int]:
    """Where the names end, where each term's postings end, where the postings begin."""
    names = _names_end(row)
    count = row.count(b"\0", _COUNT.size, names) - 1
    ends = struct.unpack_from(f"<{count}I", row, names)
    return names, ends, names + _COUNT.size * count


def _names_end(row: bytes) -> int:
    end: int = _COUNT.unpack_from(row)[0] + _COUNT.size
    if end > len(row):
        raise ValueError("a row of the word index is shorter than its names")
    return end


def _level(postings: int) -> int:
    return max(postings.bit_length() - 1, 0) // 3
