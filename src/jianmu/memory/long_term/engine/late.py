"""The late-interaction leg: the leading texts, compared with the question word by word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jianmu.errors import EmbedderError
from jianmu.memory.long_term.engine.ranking import Candidate
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    from jianmu.retrieval.late.words import Saved, WordVectors

__all__ = ["LateQuestion", "score_late", "word_by_word"]

_log = logging.getLogger("jianmu.memory.long_term")
_FLOOR = 0.3
"""Two words of a kind with nothing in common are this much alike."""
_MOST_WORDS = 64


@dataclass(frozen=True, slots=True)
class LateQuestion:
    """A question word by word.

    Attributes:
        words: As they were written.
        terms: What the word index calls each of them.
        vectors: Compares words.
    """

    words: tuple[str, ...]
    terms: tuple[str, ...]
    vectors: WordVectors


def word_by_word(query: str, analyzer: Analyzer, vectors: WordVectors) -> LateQuestion | None:
    """The question for this leg; None when it has no word, or holds a script without spaces."""
    from jianmu.retrieval.late.words import content_words

    words = tuple(dict.fromkeys(content_words(query)))[:_MOST_WORDS]
    return LateQuestion(words, tuple(map(analyzer.stem, words)), vectors) if words else None


def score_late(
    question: LateQuestion,
    candidates: Sequence[Candidate],
    idf: Callable[[str], float],
    contents: Callable[[int, Iterable[int]], Mapping[int, str]],
    saved: Saved,
) -> None:
    """Set `late` of the candidates; a failing embedder leaves the leg out, with a warning.

    Args:
        question: What is asked.
        candidates: The texts to look at.
        idf: What a term counts.
        contents: Gives the texts of items of a space, by id.
        saved: Gives kept vectors of words.
    """
    from jianmu.retrieval.late.words import content_words

    texts = _contents(candidates, contents)
    try:
        scores = question.vectors.score(
            question.words,
            [idf(term) for term in question.terms],
            [content_words(texts.get(one.row.id, "")) for one in candidates],
            saved,
        )
    except EmbedderError as error:
        _log.warning("comparing word by word failed, going on without: %s", error)
        return
    for one, score in zip(candidates, scores, strict=True):
        one.late = None if score is None else max(score - _FLOOR, 0.0)


def _contents(
    candidates: Sequence[Candidate], contents: Callable[[int, Iterable[int]], Mapping[int, str]]
) -> dict[int, str]:
    texts = {one.row.id: one.row.content for one in candidates if one.row.content}
    wanted: dict[int, list[int]] = {}
    for one in candidates:
        if one.row.id not in texts:
            wanted.setdefault(one.row.space, []).append(one.row.id)
    for space, ids in wanted.items():
        texts.update(contents(space, ids))
    return texts
