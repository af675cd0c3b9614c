"""What happens to a ranking before it is handed out: filters, time, recency, diversity, paging, reasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jianmu.errors import MemoryInputError
from jianmu.memory.long_term.engine.filters import Filter, Predicate, compile_filter
from jianmu.memory.long_term.engine.items import Row
from jianmu.memory.long_term.engine.past import PastText, past_texts
from jianmu.memory.long_term.engine.ranking import Candidate, Weights
from jianmu.memory.long_term.engine.searching import CANDIDATES, Question, Searcher
from jianmu.memory.long_term.engine.tables import Space, Tables
from jianmu.memory.long_term.engine.times import When, from_seconds, to_seconds
from jianmu.memory.long_term.inputs import check_page
from jianmu.retrieval.diversity import by_marginal_relevance
from jianmu.retrieval.rerank import Reranker
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Options", "Ranked", "Retrieval"]

_POOL = 50
"""How many of the best are looked at again by recency, diversity and a reranker."""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `retrieve`, checked."""

    limit: int
    offset: int
    predicate: Predicate | None
    since: float | None
    until: float | None
    as_of: float | None
    min_score: float | None
    recency: float
    half_life: float
    diversity: float
    explain: bool

    @classmethod
    def of(
        cls,
        *,
        filters: Filter | None,
        since: When | None,
        until: When | None,
        as_of: When | None,
        **plain: Any,
    ) -> Options:
        """Check and convert.

        Raises:
            MemoryInputError: An argument that cannot be used; it is named.
        """
        check_page(plain["limit"], plain["offset"])
        for name in ("recency", "diversity", "min_score"):
            value = plain[name]
            if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
                raise MemoryInputError(f"{name}={value!r} has to be a number between 0 and 1")
        if not isinstance(plain["half_life"], int | float) or not plain["half_life"] > 0:
            raise MemoryInputError("half_life is in seconds and has to be above 0")
        return cls(
            predicate=compile_filter(filters),
            since=None if since is None else to_seconds(since, "since"),
            until=None if until is None else to_seconds(until, "until"),
            as_of=None if as_of is None else to_seconds(as_of, "as_of"),
            **plain,
        )


@dataclass(slots=True)
class Ranked:
    """One hit: its row with content and metadata, its score, and why."""

    row: Row
    score: float
    explain: dict[str, Any] = field(default_factory=dict)


class Retrieval:
    """One call of `retrieve`, inside one view of the tables."""

    def __init__(
        self,
        tables: Tables,
        spaces: Sequence[Space],
        question: Question,
        options: Options,
        *,
        analyzer: Analyzer,
        now: float,
        embed: Callable[[Sequence[str]], npt.NDArray[np.float32]] | None,
    ) -> None:
        self._tables = tables
        self._spaces = {space.id: space for space in spaces}
        self._question = question
        self._options = options
        self._analyzer = analyzer
        self._now = now
        self._embed = embed

    def run(self, *, reranker: Reranker | None, query: str) -> list[Ranked]:
        """The page that was asked for."""
        options = self._options
        if not self._spaces:
            return []
        wanted = options.limit + options.offset
        again = reranker is not None or options.recency > 0 or options.diversity > 0
        hits = self._ranked(max(wanted, _POOL) if again else wanted)
        if reranker is not None:
            hits = _reranked(hits, reranker, query)
        if options.recency > 0:
            hits = self._by_recency(hits)
        if options.min_score is not None:
            hits = [hit for hit in hits if hit.score >= options.min_score]
        if options.diversity > 0:
            hits = self._diverse(hits, wanted)
        return hits[options.offset : wanted]

    # -- ranking and filters --------------------------------------------------------------------------

    def _ranked(self, wanted: int) -> list[Ranked]:
        """The first `wanted` hits that pass the filters; the search widens until there are so many."""
        searcher = Searcher(
            self._tables,
            list(self._spaces.values()),
            self._question,
            analyzer=self._analyzer,
            keep=self._keep,
            past=self._past(),
        )
        count = max(CANDIDATES, wanted * 2)
        while True:
            ranked, complete = searcher.search(count)
            hits = self._passing(ranked, wanted, searcher.weights)
            if complete or len(hits) >= wanted:
                return hits
            count *= 8

    def _past(self) -> list[PastText]:
        if self._options.as_of is None:
            return []
        embed = self._embed if self._question.vector is not None else None
        return past_texts(
            self._tables,
            self._spaces.values(),
            self._options.as_of,
            self._analyzer,
            embed,
            now=self._now,
        )

    def _keep(self, row: Row) -> bool:
        options = self._options
        return (
            (row.expires is None or row.expires > self._now)
            and (options.since is None or row.time >= options.since)
            and (options.until is None or row.time < options.until)
            and (options.as_of is None or row.time <= options.as_of)
        )

    def _passing(self, ranked: Sequence[Candidate], wanted: int, weights: Weights) -> list[Ranked]:
        hits: list[Ranked] = []
        step = max(wanted, 32)
        for start in range(0, len(ranked), step):
            for row, one in self._with_content(ranked[start : start + step]):
                if self._options.predicate is None or self._options.predicate(json.loads(row.metadata)):
                    reasons = self._reasons(row, one, weights) if self._options.explain else {}
                    hits.append(Ranked(row, one.score, reasons))
            if len(hits) >= wanted:
                break
        return hits[:wanted]

    def _with_content(self, ranked: Sequence[Candidate]) -> list[tuple[Row, Candidate]]:
        full: dict[int, Row] = {one.row.id: one.row for one in ranked if one.row.content}
        for id, space in self._spaces.items():
            ids = [one.row.id for one in ranked if one.row.space == id and one.row.id not in full]
            full.update({row.id: row.checked() for row in self._tables.rows(space, ids, full=True)})
        return [(full[one.row.id], one) for one in ranked if one.row.id in full]

    def _reasons(self, row: Row, one: Candidate, weights: Weights) -> dict[str, Any]:
        words = {term.text for term in self._analyzer.terms(row.content)}
        return {
            "parts": {name: round(value, 4) for name, value in one.parts(weights).items()},
            "words": sorted(term for term in self._question.terms if term in words),
            "bm25": round(max(one.own, one.context), 4),
            "cosine": round(one.vector, 4) if self._question.vector is not None else None,
            "time": from_seconds(row.time).isoformat(),
        }

    # -- second looks ---------------------------------------------------------------------------------

    def _by_recency(self, hits: list[Ranked]) -> list[Ranked]:
        share, half = self._options.recency, self._options.half_life
        for hit in hits:
            fresh = 0.5 ** (max(0.0, self._now - hit.row.time) / half)
            hit.score = (1 - share) * hit.score + share * fresh
            if self._options.explain:
                hit.explain["recency"] = round(fresh, 4)
        return sorted(hits, key=lambda hit: -hit.score)

    def _diverse(self, hits: list[Ranked], wanted: int) -> list[Ranked]:
        order = by_marginal_relevance(
            [hit.score for hit in hits], self._likeness(hits), share=self._options.diversity, count=wanted
        )
        return [hits[at] for at in order]

    def _likeness(self, hits: list[Ranked]) -> Callable[[int, int], float]:
        """How alike two hits are, 0 to 1: the cosine of their vectors, else the share of common words."""
        if self._question.vector is not None:
            import numpy as np

            rows = [self._tables.vectors(self._spaces[hit.row.space], [hit.row.slot])[0] for hit in hits]
            matrix = np.stack(rows) if rows else np.zeros((0, 1), np.float32)
            return lambda a, b: float(max(0.0, matrix[a] @ matrix[b]))
        words = [{term.text for term in self._analyzer.terms(hit.row.content)} for hit in hits]
        return lambda a, b: len(words[a] & words[b]) / max(1, len(words[a] | words[b]))


def _reranked(hits: list[Ranked], reranker: Reranker, query: str) -> list[Ranked]:
    scores = list(reranker.rerank(query, [hit.row.content for hit in hits])) if hits else []
    if len(scores) != len(hits):
        raise MemoryInputError(f"the reranker returned {len(scores)} scores for {len(hits)} texts")
    for hit, score in zip(hits, scores, strict=True):
        hit.score = min(1.0, max(0.0, float(score)))
    return sorted(hits, key=lambda hit: -hit.score)
