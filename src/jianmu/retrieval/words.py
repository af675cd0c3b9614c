"""A word index in memory, for documents that need no database: BM25 by the same rules as stored memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from jianmu.retrieval.bm25 import POSTING_SIZE, Posting, QueryTerm, idf, pack, remove, score_postings
from jianmu.retrieval.tokens import Analyzer

__all__ = ["WordIndex"]

Id = TypeVar("Id", bound=Hashable)


class WordIndex(Generic[Id]):
    """Finds texts by their words, in any language.

    Args:
        analyzer: Shared to share its memory of stems.
    """

    def __init__(self, analyzer: Analyzer | None = None) -> None:
        self._analyzer = analyzer or Analyzer()
        self._postings: dict[str, bytes] = {}
        self._slots: dict[Id, int] = {}
        self._ids: dict[int, Id] = {}
        self._terms: dict[Id, tuple[set[str], int]] = {}
        self._words = 0
        self._next = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, id: Id, text: str) -> None:
        """Index `text` under `id`, in place of an earlier text."""
        self.remove(id)
        terms = self._analyzer.terms(text)
        length = self._analyzer.length(terms)
        forms: dict[str, int] = {}
        for term in terms:
            forms[term.text] = forms.get(term.text, 0) | term.form
        for name, count in Counter(term.text for term in terms).items():
            posting = pack([Posting(self._next, count, 0, forms[name], length, 0)])
            self._postings[name] = self._postings.get(name, b"") + posting
        self._slots[id], self._ids[self._next] = self._next, id
        self._terms[id] = (set(forms), length)
        self._words += length
        self._next += 1

    def remove(self, id: Id) -> bool:
        """Forget `id`; False when it is unknown."""
        slot = self._slots.pop(id, None)
        if slot is None:
            return False
        names, length = self._terms.pop(id)
        for name in names:
            entries = remove(self._postings[name], slot)
            if entries:
                self._postings[name] = entries
            else:
                del self._postings[name]
        del self._ids[slot]
        self._words -= length
        return True

    def search(self, query: str, limit: int = 10) -> list[tuple[Id, float]]:
        """The best `limit` ids with their BM25 scores (> 0, no upper bound), best first."""
        wanted = self._analyzer.query_terms(query)
        sizes = {name: len(self._postings.get(name, b"")) // POSTING_SIZE for name in wanted}
        terms = [
            QueryTerm(name, idf(len(self._slots), sizes[name]), form)
            for name, form in wanted.items()
            if sizes[name]
        ]
        scores = score_postings(
            {term.text: [self._postings[term.text]] for term in terms},
            terms,
            average=self._words / max(len(self._slots), 1),
            slots=self._next,
        )
        best = scores.top(limit)
        found = sorted(zip(scores.own(best), (-slot for slot in best), strict=True), reverse=True)
        return [(self._ids[-slot], score) for score, slot in found[:limit]]
