"""From a question to ranked items: candidates of both legs, their neighbours, one ranking."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice, repeat
from typing import TYPE_CHECKING

from jianmu.memory.long_term.engine.items import Row, named_speaker
from jianmu.memory.long_term.engine.late import LateQuestion, TokenQuestion
from jianmu.memory.long_term.engine.past import PastText
from jianmu.memory.long_term.engine.ranking import (
    LEXICAL,
    SEMANTIC,
    TOKEN_BY_TOKEN,
    WORD_BY_WORD,
    Candidate,
    Confidence,
    Weights,
    leading,
    rank,
)
from jianmu.memory.long_term.engine.segments import damage_named
from jianmu.memory.long_term.engine.tables import Space, Tables
from jianmu.memory.long_term.engine.times import to_date
from jianmu.retrieval.bm25 import K1, POSTING_SIZE, LexicalScores, QueryTerm, idf, score_postings
from jianmu.retrieval.dates import DateMention, DateSpan, date_mentions, date_terms
from jianmu.retrieval.relative_dates import relative_dates
from jianmu.retrieval.scripts import has_unspaced
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["CANDIDATES", "Question", "Searcher"]

CANDIDATES = 60
"""How many texts each leg puts up at first."""
PASSAGE_SHARE = 1.25
"""What the best passage of a long text counts, against a text as short as a passage: what is asked for
stands among other things there, which thins its words and its vector. Measured on long answers."""
_MOST_TERMS = 64
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, ready for both legs.

    Attributes:
        terms: Terms to look up, each with the surface forms asked for.
        dates: The dates that are named.
        vector: The embedded question, or None for words only.
        floor: Cosine below which nothing is meant.
        ceiling: Cosine of the same thing said twice.
        late: The question word by word, or None.
        optional: Terms that count where they occur and are not missed where they do not.
        unspaced: Whether a script without spaces occurs in it.
    """

    terms: dict[str, int]
    dates: tuple[DateMention | DateSpan, ...] = ()
    vector: npt.NDArray[np.float32] | None = None
    floor: float = 0.0
    ceiling: float = 1.0
    late: LateQuestion | None = None
    optional: dict[str, int] = field(default_factory=dict)
    unspaced: bool = False

    @classmethod
    def of(cls, analyzer: Analyzer, query: str, today: date) -> Question:
        """The words and dates of a question; a very long one is judged by its first 4,000 characters."""
        query = query[:_LONGEST].encode("utf-8", "replace").decode()
        dates = (*date_mentions(query), *relative_dates(query, today))
        terms = analyzer.query_terms(query)
        for mention in dates:
            terms.update(dict.fromkeys(date_terms(mention), 0))
        return cls(terms, dates, optional=analyzer.other_forms(query), unspaced=has_unspaced(query))


class Searcher:
    """One search over some spaces, inside one view of the tables.

    Args:
        tables: The open transaction.
        spaces: Where to look.
        question: What for.
        keep: Whether an item may be returned at all (time, expiry); asked before the ranking.
        past: Superseded texts to rank as well.
        weights: Overrides the shipped ones, for measuring.

    Attributes:
        weights: What each leg is worth for this question.
    """

    def __init__(
        self,
        tables: Tables,
        spaces: Sequence[Space],
        question: Question,
        *,
        analyzer: Analyzer,
        keep: Callable[[Row], bool],
        past: Sequence[PastText] = (),
        weights: Weights | None = None,
    ) -> None:
        self._tables = tables
        self._spaces = {space.id: space for space in spaces}
        self._question = question
        self._keep = keep
        self._past = past
        self._analyzer = analyzer
        self.weights = weights or _weights_for(question)
        self._lexical: dict[int, LexicalScores] = {}
        self._cosines: dict[int, dict[int, float]] = {}
        self._terms: list[QueryTerm] = []
        self._average = 1.0
        self._score_words()

    def search(self, count: int) -> tuple[list[Candidate], bool]:
        """Ranked candidates out of `count` from each leg, and whether that was all there is."""
        rows, complete = self._candidates(count)
        found = {row.id: Candidate(row) for row in rows if self._keep(row)}
        for row in self._beside(found):
            if self._keep(row):
                found.setdefault(row.id, Candidate(row))
        self._score(found.values())
        for text in self._past:
            if self._keep(text.row):
                found[text.row.id] = text.candidate(
                    self._terms, self._average, self._question.vector, unspaced=self._question.unspaced
                )
        if self._question.late is not None:
            self._score_late(found)
        everything = sum(term.idf for term in self._terms) * (K1 + 1)
        confidence = Confidence(everything, self._question.floor, self._question.ceiling)
        return rank(found, self.weights, confidence), complete

    # -- words ----------------------------------------------------------------------------------------

    def _score_words(self) -> None:
        with damage_named():
            self._look_up_words()

    def _look_up_words(self) -> None:
        wanted = {**self._question.terms, **self._question.optional}
        postings = {id: self._tables.postings(space, wanted) for id, space in self._spaces.items()}
        documents = sum(space.documents for space in self._spaces.values())
        words = sum(space.words for space in self._spaces.values())
        counts: dict[str, int] = {}
        for found in postings.values():
            for term, blocks in found.items():
                counts[term] = counts.get(term, 0) + sum(map(len, blocks)) // POSTING_SIZE
        terms = [QueryTerm(name, idf(documents, counts.get(name, 0)), form) for name, form in wanted.items()]
        terms.sort(key=lambda term: -term.idf)
        written = any(term in counts for term in self._question.optional)  # the texts use the other form
        needed = [term for term in terms if term.text in counts or not (written or term.text[0] == "\x01")]
        self._terms = [term for term in needed if term.text in counts or term.text in self._question.terms]
        self._terms = self._terms[:_MOST_TERMS]
        self._average = words / max(documents, 1)
        for id, found in postings.items():
            self._lexical[id] = score_postings(
                found, self._terms, average=self._average, slots=self._spaces[id].slots
            )

    # -- candidates -----------------------------------------------------------------------------------

    def _candidates(self, count: int) -> tuple[list[Row], bool]:
        """The items that one of the legs puts up.

        A slot that memory holds and the tables do not is forgotten if it was removed, or is newer than this
        view of the tables.
        """
        known_gone: set[tuple[int, int]] = set()
        while True:
            slots, complete = self._slots(count)
            rows = {id: self._tables.rows_at(self._spaces[id], some) for id, some in slots.items() if some}
            gone = {
                (id, slot)
                for id, cosines in self._cosines.items()
                for slot in cosines.keys() & slots.get(id, set())
                if slot not in rows[id] and slot < self._spaces[id].slots
            }
            if known_gone >= gone:  # none; or a damaged file names slots that nothing can forget
                return [row for some in rows.values() for row in some.values()], complete
            known_gone |= gone
            for id, space in self._spaces.items():
                self._tables.forget_slots(space, [slot for there, slot in gone if there == id])

    def _slots(self, count: int) -> tuple[dict[int, set[int]], bool]:
        """The best slots of each leg by space, and whether a leg has no more than these."""
        slots: dict[int, set[int]] = {}
        complete = True
        for id, scores in self._lexical.items():
            best = scores.top(count)
            complete = complete and len(best) < count
            slots[id] = set(best)
        if self._question.vector is not None:
            for id, space in self._spaces.items():
                near, cosines = self._tables.nearest(space, self._question.vector, count)
                complete = complete and len(near) < count
                self._cosines[id] = dict(zip(near, cosines, strict=True))
                slots[id].update(near)
        return (slots if len(slots) == 1 else self._best_of_all(slots, count)), complete

    def _best_of_all(self, slots: dict[int, set[int]], count: int) -> dict[int, set[int]]:
        """Across many spaces: the best of each leg, not the best of each space."""
        legs: list[list[tuple[float, int, int]]] = [[], [], []]
        for id, some in slots.items():
            ordered = sorted(some)
            cosines = self._cosines.get(id, {})
            for leg, scores in zip(
                legs,
                (
                    self._lexical[id].context(ordered),
                    self._lexical[id].own(ordered),
                    [cosines.get(slot, -1.0) for slot in ordered],
                ),
                strict=True,
            ):
                leg.extend(zip(scores, repeat(id), ordered))
        kept: dict[int, set[int]] = {}
        for leg in legs:
            for _, id, slot in heapq.nlargest(count, leg):
                kept.setdefault(id, set()).add(slot)
        return kept

    def _beside(self, found: dict[int, Candidate]) -> list[Row]:
        wanted: dict[int, set[int]] = {}
        for one in found.values():
            for beside in (one.row.before, one.row.after):
                if beside is not None and beside not in found:
                    wanted.setdefault(one.row.space, set()).add(beside)
        return [row for id, ids in wanted.items() for row in self._tables.rows(self._spaces[id], ids)]

    # -- scores ---------------------------------------------------------------------------------------

    def _score(self, candidates: Iterable[Candidate]) -> None:
        by_space: dict[int, list[Candidate]] = {}
        for one in candidates:
            by_space.setdefault(one.row.space, []).append(one)
        for id, some in by_space.items():
            self._score_in(id, some)

    def _score_in(self, space: int, candidates: Sequence[Candidate]) -> None:
        slots = [slot for one in candidates for slot in one.row.slots]
        own = iter(self._lexical[space].own(slots))
        context = iter(self._lexical[space].context(slots))
        cosines = iter(self._cosines_of(space, slots)) if self._question.vector is not None else None
        named: dict[str | None, bool] = {None: False}
        for one in candidates:
            row = one.row
            one.foreign = row.unspaced != self._question.unspaced
            one.own, one.context = _of_passages(own, row.passages), _of_passages(context, row.passages)
            if cosines is not None:
                one.vector = _of_passages(cosines, row.passages, whole=True)
            if self._question.dates:
                one.date = any(mention.fits(to_date(row.day)) for mention in self._question.dates)
            if row.speaker not in named:
                named[row.speaker] = self._names(named_speaker(row))
            one.speaker = named[row.speaker]

    def _score_late(self, found: dict[int, Candidate]) -> None:
        late = self._question.late
        assert late is not None
        idfs = {term.text: term.idf for term in self._terms}
        unknown = idf(sum(space.documents for space in self._spaces.values()), 0)
        candidates = leading(found, replace(self.weights, late=0.0), late.leading)
        late.compare(candidates, lambda term: idfs.get(term, unknown), self._tables, self._spaces)

    def _cosines_of(self, space: int, slots: Sequence[int]) -> list[float]:
        assert self._question.vector is not None
        known = self._cosines.setdefault(space, {})
        missing = [slot for slot in slots if slot not in known]
        if missing:
            values = self._tables.cosines(self._spaces[space], self._question.vector, missing)
            known.update(zip(missing, values, strict=True))
        return [known[slot] for slot in slots]

    def _names(self, speaker: str | None) -> bool:
        if speaker is None:
            return False
        terms = [term.text for term in self._analyzer.terms(speaker) if term.weight]
        return bool(terms) and all(term in self._question.terms for term in terms)


def _of_passages(values: Iterator[float], count: int, *, whole: bool = False) -> float:
    """What the best of the next `count` values counts; the first of several may stand for the whole text."""
    if count == 1:
        return next(values)
    some = list(islice(values, count))
    return max(some[0] if whole else 0.0, max(some) * PASSAGE_SHARE)


def _weights_for(question: Question) -> Weights:
    if isinstance(question.late, TokenQuestion):
        return TOKEN_BY_TOKEN
    if question.vector is None:
        return LEXICAL
    return SEMANTIC if question.late is None else WORD_BY_WORD
