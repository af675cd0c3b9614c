"""One ranking out of words, vectors and the conversation around each text. Pure: no database, no numpy.

Every leg is divided by its best value and the legs are averaged by weight (a sum of scores, not of ranks:
measured better on every set). A text in another script than the question can share no word with it: its
meaning alone counts as much as all legs of the others, else whatever is written like the question would stand
before what answers it. Then a text gains when the question names its speaker or its date, when the
texts beside it match, and when its session holds a good match.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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
    """One item on its way through the ranking.

    `late` is None where nothing could be compared: the other legs then count for that one as well. `foreign`
    says that one of question and text is written without spaces between words, and the other is not. What the
    score is made of stands in `words` to `session`, before it was multiplied by `scale`.
    """

    row: Row
    own: float = 0.0
    context: float = 0.0
    vector: float = 0.0
    late: float | None = None
    date: bool = False
    speaker: bool = False
    foreign: bool = False
    words: float = 0.0
    meaning: float = 0.0
    neighbours: float = 0.0
    session: float = 0.0
    base: float = 0.0
    score: float = 0.0
    scale: float = 1.0

    def parts(self, weights: Weights) -> dict[str, float]:
        """What the score is made of, by name; what adds nothing is left out."""
        everything = {
            "words": self.words,
            "meaning": self.meaning,
            "date": weights.date if self.date else 0.0,
            "speaker": weights.speaker if self.speaker else 0.0,
            "neighbours": self.neighbours,
            "session": self.session,
        }
        return {name: value * self.scale for name, value in everything.items() if value}


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
    top_late = max((one.late for one in everyone if one.late is not None), default=0.0)
    total = weights.own + weights.context + weights.vector + (weights.late if top_late > 0 else 0.0)
    own = _gain(weights.own / total, max((one.own for one in everyone), default=0.0))
    context = _gain(weights.context / total, max((one.context for one in everyone), default=0.0))
    vector = _gain(weights.vector / total, max((one.vector for one in everyone), default=0.0))
    best = 0.0
    for one in everyone:
        one.words = own * one.own + context * one.context
        one.meaning = vector * one.vector if one.vector > 0 else 0.0
        if one.foreign and weights.vector:
            one.meaning *= total / weights.vector
        elif top_late > 0:
            one.meaning += _late_share(one.late, one.words + one.meaning, top_late, weights.late / total)
        base = one.words + one.meaning
        if one.date:
            base += weights.date
        if one.speaker:
            base += weights.speaker
        one.base = base
        best = max(best, base)
    return best


def _gain(share: float, top: float) -> float:
    return share / top if top > 0 else 0.0


def _late_share(late: float | None, others: float, top: float, share: float) -> float:
    return share * late / top if late is not None else others * share / (1 - share) if share < 1 else 0.0


def _surroundings(candidates: Mapping[int, Candidate], weights: Weights) -> None:
    sessions: dict[tuple[int, str], float] = {}
    for one in candidates.values():
        row = one.row
        gain = 0.0
        if row.before is not None and (before := candidates.get(row.before)) is not None:
            gain += weights.before * before.base
        if row.after is not None and (after := candidates.get(row.after)) is not None:
            gain += weights.after * after.base
        one.neighbours = min(1.0, weights.reach / max(row.length, 1)) * gain
        one.score = one.base + one.neighbours
        if row.session is not None:
            session = (row.space, row.session)
            sessions[session] = max(sessions.get(session, 0.0), one.score)
    for one in candidates.values():
        if one.row.session is not None:
            one.session = weights.session * sessions[one.row.space, one.row.session]
            one.score += one.session


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
        one.scale = meets / best
        one.score = one.score / best * meets  # in this order the best one is exactly `meets`
