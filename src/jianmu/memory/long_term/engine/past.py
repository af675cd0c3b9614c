"""What was true at an earlier time: superseded texts, brought back as candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jianmu.memory.long_term.engine.items import Row
from jianmu.memory.long_term.engine.ranking import Candidate
from jianmu.memory.long_term.engine.tables import Space, Tables, Version
from jianmu.memory.long_term.engine.times import day_of
from jianmu.retrieval.bm25 import QueryTerm, term_score
from jianmu.retrieval.scripts import has_unspaced
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PastText", "past_texts"]

_MOST = 1_000
"""Superseded texts that are looked at in one namespace, newest first."""


@dataclass(frozen=True, slots=True)
class PastText:
    """A superseded text; it stands in no index, so it is scored by itself."""

    row: Row
    counts: Counter[str]
    forms: dict[str, int]
    vector: npt.NDArray[np.float32] | None

    def candidate(
        self,
        terms: Iterable[QueryTerm],
        average: float,
        query: npt.NDArray[np.float32] | None,
        *,
        unspaced: bool,
    ) -> Candidate:
        """The text with its scores for a question; `unspaced` tells of the question what it does of a row."""
        score = sum(
            term_score(term, self.counts[term.text], self.row.length, self.forms[term.text], average)
            for term in terms
            if term.text in self.counts
        )
        cosine = float(self.vector @ query) if self.vector is not None and query is not None else 0.0
        foreign = self.row.unspaced != unspaced
        return Candidate(self.row, own=score, context=score, vector=cosine, foreign=foreign)


def past_texts(
    tables: Tables,
    spaces: Iterable[Space],
    when: float,
    analyzer: Analyzer,
    embed: Callable[[Sequence[str]], npt.NDArray[np.float32]] | None,
    *,
    now: float,
) -> list[PastText]:
    """Texts that held at `when` and do not any more.

    Args:
        tables: The open transaction.
        spaces: Where to look.
        when: Seconds since 1970.
        analyzer: Splits into terms.
        embed: Gives vectors; None for words only.
        now: Seconds since 1970; what expired by then is not told.
    """
    found = [
        (space, version) for space in spaces for version in tables.versions_at(space, when, _MOST, now=now)
    ]
    vectors: Sequence[npt.NDArray[np.float32] | None] = [None] * len(found)
    if embed is not None and found:
        from jianmu.retrieval.vectors import unit

        vectors = list(unit(embed([version.content for _, version in found])))
    texts = []
    for number, ((space, version), vector) in enumerate(zip(found, vectors, strict=True), start=1):
        terms = analyzer.terms(version.content)
        forms: dict[str, int] = {}
        for term in terms:
            forms[term.text] = forms.get(term.text, 0) | term.form
        row = _row(space, version, -number, analyzer.length(terms))
        texts.append(PastText(row, Counter(term.text for term in terms), forms, vector))
    return texts


def _row(space: Space, version: Version, id: int, length: int) -> Row:
    return Row(
        id=id,
        uid=version.uid,
        space=space.id,
        slot=-1,
        passages=0,
        length=length,
        before=None,
        after=None,
        session=None,
        speaker=None,
        time=version.time,
        day=day_of(version.time),
        dated=True,
        expires=None,
        unspaced=has_unspaced(version.content),
        content=version.content,
        metadata=version.metadata,
    )
