"""Okapi BM25 (Robertson and Zaragoza, 2009) over packed postings.

A posting is eight bytes: where (slot), how often in the text itself and in its context, which surface
forms, how long the text and its context are. Two scores come out of one pass: `own` knows the text alone,
`context` also the end of the message before it. numpy is used when it is there; the results are the same
without it.
"""

from __future__ import annotations

import heapq
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

__all__ = [
    "EXACT",
    "K1",
    "POSTING_SIZE",
    "B",
    "LexicalScores",
    "Posting",
    "QueryTerm",
    "idf",
    "pack",
    "pack_terms",
    "remove",
    "score_postings",
    "term_score",
    "unpack",
]  # fmt: skip

K1 = 1.2
"""How soon a repeated word stops counting."""
B = 0.9
"""How much a long text is held back; measured better than 0.75 on chats with long answers."""
EXACT = 0.15
"""What the very same surface form adds to a stem's score: "organ" before "organs"."""

_LAYOUT = struct.Struct("<IBBH")
POSTING_SIZE = _LAYOUT.size
_LONGEST = 0x0FFF
_MOST = 0x0F


class Posting(NamedTuple):
    """One term in one text; counts stop at 15 and lengths at 4,095, where BM25 is flat."""

    slot: int
    own: int
    context: int
    forms: int
    length: int
    context_length: int


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One term of a question: its weight (idf) and the surface forms asked for."""

    text: str
    idf: float
    forms: int


def idf(documents: int, matching: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)): never negative, so that any match beats no match."""
    matching = min(matching, documents)
    return math.log(1 + (documents - matching + 0.5) / (matching + 0.5))


def term_score(term: QueryTerm, count: int, length: float, forms: int, average: float) -> float:
    """What one term adds to the score of a text that has it `count` times."""
    gain = term.idf * (K1 + 1) * (1 + EXACT if forms & term.forms else 1)
    return gain * count / (count + K1 * (1 - B) + K1 * B * length / max(average, 1e-9))


def pack(postings: Iterable[Posting]) -> bytes:
    """Postings as bytes, in the order given."""
    return b"".join(
        _LAYOUT.pack(
            p.slot,
            min(p.own, _MOST) | min(p.context, _MOST) << 4,
            p.forms,
            min(p.length, _LONGEST) | min(p.context_length, _MOST) << 12,
        )
        for p in postings
    )


def pack_terms(
    slot: int,
    own: Mapping[str, int],
    context: Mapping[str, int],
    forms: Mapping[str, int],
    length: int,
) -> list[tuple[str, bytes]]:
    """The packed posting of each term of one text: `pack` for a whole text at once."""
    lengths = (
        min(length, _LONGEST) | min(sum(context.values()), _MOST) << 12 if context else min(length, _LONGEST)
    )
    put = _LAYOUT.pack
    if not context:
        return [
            (term, put(slot, count if count < _MOST else _MOST, forms[term], lengths))
            for term, count in own.items()
        ]
    return [
        (
            term,
            put(
                slot,
                min(own.get(term, 0), _MOST) | min(context.get(term, 0), _MOST) << 4,
                forms.get(term, 0),
                lengths,
            ),
        )
        for term in {**own, **context}
    ]


def unpack(entries: bytes) -> list[Posting]:
    """The reverse of `pack`."""
    return [
        Posting(slot, counts & _MOST, counts >> 4, forms, lengths & _LONGEST, lengths >> 12)
        for slot, counts, forms, lengths in _LAYOUT.iter_unpack(entries)
    ]


def remove(entries: bytes, slot: int) -> bytes:
    """`entries` without the posting of `slot`."""
    wanted = struct.pack("<I", slot)
    for at in range(0, len(entries), POSTING_SIZE):
        if entries[at : at + 4] == wanted:
            return entries[:at] + entries[at + POSTING_SIZE :]
    return entries


class LexicalScores(Protocol):
    """BM25 of every text that has at least one term of the question."""

    def top(self, count: int) -> list[int]:
        """The slots of the best `count` by context and by own score, in no particular order."""
        ...

    def own(self, slots: Sequence[int]) -> list[float]:
        """Scores by the text alone; 0 where nothing matches."""
        ...

    def context(self, slots: Sequence[int]) -> list[float]:
        """Scores with the end of the message before; 0 where nothing matches."""
        ...


def score_postings(
    postings: Mapping[str, Sequence[bytes]], terms: Iterable[QueryTerm], *, average: float, slots: int
) -> LexicalScores:
    """Score the texts behind `postings`.

    Args:
        postings: For each term its packed postings, in blocks.
        terms: The question.
        average: The average length of a text, in words.
        slots: One more than the highest slot.
    """
    found = [(term, b"".join(postings[term.text])) for term in terms if postings.get(term.text)]
    try:
        import numpy as np
    except ImportError:
        return _score_plainly(found, average)
    return _score_with_numpy(np, found, average, slots)


class _PlainScores:
    def __init__(self) -> None:
        self.own_scores: dict[int, float] = {}
        self.context_scores: dict[int, float] = {}

    def top(self, count: int) -> list[int]:
        best = heapq.nlargest(count, self.context_scores, key=self.context_scores.__getitem__)
        own = heapq.nlargest(count, self.own_scores, key=self.own_scores.__getitem__)
        return list(dict.fromkeys([*best, *own]))

    def own(self, slots: Sequence[int]) -> list[float]:
        return [self.own_scores.get(slot, 0.0) for slot in slots]

    def context(self, slots: Sequence[int]) -> list[float]:
        return [self.context_scores.get(slot, 0.0) for slot in slots]


def _score_plainly(found: list[tuple[QueryTerm, bytes]], average: float) -> LexicalScores:
    scores = _PlainScores()
    own_scores, context_scores = scores.own_scores, scores.context_scores
    base, slope = K1 * (1 - B), K1 * B / max(average, 1e-9)
    for term, entries in found:
        weight = term.idf * (K1 + 1)
        for slot, counts, forms, lengths in _LAYOUT.iter_unpack(entries):
            gain = weight * (1 + EXACT) if forms & term.forms else weight
            own, length = counts & _MOST, lengths & _LONGEST
            both = own + (counts >> 4)
            if own:
                value = gain * own / (own + base + slope * length)
                own_scores[slot] = own_scores.get(slot, 0.0) + value
            value = gain * both / (both + base + slope * (length + (lengths >> 12)))
            context_scores[slot] = context_scores.get(slot, 0.0) + value
    return scores


class _ArrayScores:
    """Scores by slot; one more slot at the end, always 0, stands for all that are not there."""

    def __init__(self, np: Any, own: Any, context: Any) -> None:
        self._np = np
        self._own = own
        self._context = context
        self._slots = len(own) - 1

    def top(self, count: int) -> list[int]:
        chosen: dict[int, None] = {}
        for scores in (self._context, self._own):
            some = self._np.flatnonzero(scores)  # few of many; a partition of equal zeros is slow
            if len(some) > count:
                values = scores[some]
                some = some[self._np.argpartition(values, len(some) - count)[-count:]]
            chosen.update(dict.fromkeys(some.tolist()))
        return list(chosen)

    def own(self, slots: Sequence[int]) -> list[float]:
        return self._of(self._own, slots)

    def context(self, slots: Sequence[int]) -> list[float]:
        return self._of(self._context, slots)

    def _of(self, scores: Any, slots: Sequence[int]) -> list[float]:
        inside = [slot if slot < self._slots else self._slots for slot in slots]
        found: list[float] = scores[inside].tolist()
        return found


def _score_with_numpy(
    np: Any, found: list[tuple[QueryTerm, bytes]], average: float, slots: int
) -> LexicalScores:
    own_scores = np.zeros(slots + 1, np.float32)
    context_scores = np.zeros(slots + 1, np.float32)
    layout = np.dtype([("slot", "<u4"), ("counts", "u1"), ("forms", "u1"), ("lengths", "<u2")])
    base, slope = np.float32(K1 * (1 - B)), np.float32(K1 * B / max(average, 1e-9))
    for term, entries in found:
        block = np.frombuffer(entries, layout)
        slot, counts, lengths = block["slot"], block["counts"], block["lengths"]
        gain = np.float32(term.idf * (K1 + 1)) * np.where(block["forms"] & term.forms, 1 + EXACT, 1.0)
        own = (counts & _MOST).astype(np.float32)
        both = own + (counts >> 4)
        length = (lengths & _LONGEST).astype(np.float32)
        own_scores[slot] += gain * own / (own + base + slope * length)
        context_scores[slot] += gain * both / (both + base + slope * (length + (lengths >> 12)))
    return _ArrayScores(np, own_scores, context_scores)
