"""One ranking out of words, vectors and the conversation around each text. Pure: no database, no numpy.

Every leg is divided by its best value and the legs are averaged by weight (a sum of scores, not of ranks:
measured better on every set). Then a text gains when the question names its speaker or its date, when the
texts beside it match, and when its session holds a good match.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from jianmu.memory.long_term.engine.items import Row

__all__ = [
    "LEXICAL",
    "SEMANTIC",
    "TOKEN_BY_TOKEN",
    "WORD_BY_WORD",
    "Candidate",
    "Confidence",
    "Weights",
    "leading",
    "rank",
]


@dataclass(frozen=True, slots=True)
class Weights:
    """What each leg and each surrounding is worth; tuned once, the same for every kind of chat and language.

    Attributes:
        own: BM25 of the text alone.
        context: BM25 of the text and the end of the message before it.
        vector: Cosine to the question.
        late: Late interaction: each word of the question and its nearest word in the text.
        before: Share of the score of the message before.
        after: Share of the score of the message after.
        reach: Length in words (stop words apart) up to which a text takes the full share of its neighbours.
        date: Gain when the date of the text fits a date in the question.
        speaker: Gain when the question names the speaker.
        session: Share of the best score in the session.
    """

    own: float
    context: float
    vector: float
    before: float
    after: float
    reach: float
    date: float
    speaker: float
    session: float
    late: float = 0.0


LEXICAL = Weights(
    own=0.2, context=0.5, vector=0.0, before=0.2, after=0.25, reach=30, date=0.3, speaker=0.2, session=0.3
)
SEMANTIC = Weights(
    own=0.1, context=0.5, vector=0.35, before=0.1, after=0.25, reach=40, date=0.25, speaker=0.2, session=0.35
)
WORD_BY_WORD = replace(SEMANTIC, late=0.65)
TOKEN_BY_TOKEN = replace(SEMANTIC, late=2.5)


@dataclass(slots=True)
class Candidate:
    """One item on its way through the ranking; `parts` says what its score is made of.

    `late` is None where nothing could be compared: the other legs then count for that one as well.
    """

    row: Row
    own: float = 0.0
    context: float = 0.0
    vector: float = 0.0
    late: float | None = None
    date: bool = False
    speaker: bool = False
    base: float = 0.0
    score: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How well the best match meets the question, apart from the others.

    Attributes:
        lexical: The BM25 score of a text that has every term of the question.
        floor: Cosine below which nothing is meant.
        ceiling: Cosine of the same thing said twice.
    """

    lexical: float
    floor: float = 0.0
    ceiling: float = 1.0


def rank(candidates: Mapping[int, Candidate], weights: Weights, confidence: Confidence) -> list[Candidate]:
    """Candidates that match at all, best first, with scores in [0, 1]."""
    best = _base_scores(candidates.values(), weights)
    if best <= 0:
        return []
    _surroundings(candidates, weights)
    found = [one for one in candidates.values() if one.score > 0 and _matches(one, candidates, confidence)]
    found.sort(key=lambda one: (-one.score, -one.row.time, one.row.id))
    if found:
        _scale(found, weights, confidence)
    return found


def leading(candidates: Mapping[int, Candidate], weights: Weights, count: int) -> list[Candidate]:
    """The best `count` so far, in no particular order: worth a closer look."""
    if len(candidates) > count:
        _base_scores(candidates.values(), weights)
        _surroundings(candidates, weights)
    return heapq.nlargest(count, candidates.values(), key=lambda one: one.score)


def _base_scores(candidates: Iterable[Candidate], weights: Weights) -> float:
    everyone = list(candidates)
    top_own = max((one.own for one in everyone), default=0.0)
    top_context = max((one.context for one in everyone), default=0.0)
    top_vector = max((one.vector for one in everyone), default=0.0)
    top_late = max((one.late for one in everyone if one.late is not None), default=0.0)
    total = weights.own + weights.context + weights.vector + (weights.late if top_late > 0 else 0.0)
    best = 0.0
    for one in everyone:
        own = weights.own / total * one.own / top_own if top_own > 0 else 0.0
        context = weights.context / total * one.context / top_context if top_context > 0 else 0.0
        vector = weights.vector / total * max(one.vector, 0.0) / top_vector if top_vector > 0 else 0.0
        late = 0.0
        if top_late > 0:
            late = _late_share(one.late, own + context + vector, top_late, weights.late / total)
        matching = own + context + vector + late
        date = weights.date if one.date else 0.0
        speaker = weights.speaker if one.speaker else 0.0
        one.base = matching + date + speaker
        one.parts = {"words": own + context, "meaning": vector + late, "date": date, "speaker": speaker}
        best = max(best, one.base)
    return best


def _late_share(late: float | None, others: float, top: float, share: float) -> float:
    return share * late / top if late is not None else others * share / (1 - share) if share < 1 else 0.0


def _surroundings(candidates: Mapping[int, Candidate], weights: Weights) -> None:
    sessions: dict[tuple[int, str], float] = {}
    for one in candidates.values():
        before = candidates.get(one.row.before) if one.row.before is not None else None
        after = candidates.get(one.row.after) if one.row.after is not None else None
        share = min(1.0, weights.reach / max(one.row.length, 1))
        gain = weights.before * (before.base if before else 0.0) + weights.after * (
            after.base if after else 0.0
        )
        one.parts["neighbours"] = share * gain
        one.score = one.base + share * gain
        if one.row.session is not None:
            session = (one.row.space, one.row.session)
            sessions[session] = max(sessions.get(session, 0.0), one.score)
    for one in candidates.values():
        gain = weights.session * sessions.get((one.row.space, one.row.session or ""), 0.0)
        one.parts["session"] = gain if one.row.session is not None else 0.0
        one.score += one.parts["session"]


def _matches(one: Candidate, candidates: Mapping[int, Candidate], confidence: Confidence) -> bool:
    """By itself, or as the neighbour of one that does."""
    if _matches_itself(one, confidence):
        return True
    around = (candidates.get(beside) for beside in (one.row.before, one.row.after) if beside is not None)
    return any(beside is not None and _matches_itself(beside, confidence) for beside in around)


def _matches_itself(one: Candidate, confidence: Confidence) -> bool:
    return one.context > 0 or one.own > 0 or one.vector > confidence.floor


def _scale(found: list[Candidate], weights: Weights, confidence: Confidence) -> None:
    """Scores in [0, 1]: the place below the best, times how well the best one meets the question."""
    lexical = max(one.context for one in found) / confidence.lexical if confidence.lexical > 0 else 0.0
    cosine = max(one.vector for one in found) / confidence.ceiling if weights.vector else 0.0
    meets = min(1.0, max(lexical, cosine, 0.0))
    best = found[0].score
    for one in found:
        one.score = one.score / best * meets
        one.parts = {name: value / best * meets for name, value in one.parts.items() if value}
