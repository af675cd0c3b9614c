"""The late-interaction leg: the leading texts, compared with the question word by word or token by token."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jianmu.errors import EmbedderError
from jianmu.memory.long_term.engine.ranking import Candidate
from jianmu.memory.long_term.engine.spaces import Space
from jianmu.memory.long_term.engine.tables import Tables
from jianmu.retrieval.scripts import has_unspaced
from jianmu.retrieval.stopwords import ENGLISH
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jianmu.retrieval.late.tokens import TokenEmbedder
    from jianmu.retrieval.late.words import WordVectors

__all__ = ["LateQuestion", "TokenQuestion", "WordQuestion", "token_by_token", "word_by_word"]

_log = logging.getLogger("jianmu.memory.long_term")
_WORD_FLOOR = 0.3
"""Two words of a kind with nothing in common are this much alike."""
_MOST_WORDS = 64
_STOP_SHARE = 0.5
"""What "who" or "when" in a question counts beside its other words; a token knows its sentence."""
_BEFORE_SHARE = 0.9
"""What a token of the message before counts for a short answer to it."""

Idf = Callable[[str], float]
"""What a term counts."""


class LateQuestion(Protocol):
    """A question that sets `late` of candidates."""

    @property
    def leading(self) -> int:
        """How many of the leading texts are worth comparing."""
        ...

    def compare(
        self, candidates: Sequence[Candidate], idf: Idf, tables: Tables, spaces: Mapping[int, Space]
    ) -> None:
        """Set `late` of each candidate that there is something to compare with."""
        ...


@dataclass(frozen=True, slots=True)
class WordQuestion:
    """A question word by word; the vectors of a text's words are looked up by word.

    Attributes:
        words: As they were written.
        terms: What the word index calls each of them.
        vectors: Compares words.
    """

    words: tuple[str, ...]
    terms: tuple[str, ...]
    vectors: WordVectors
    leading: int = 50

    def compare(
        self, candidates: Sequence[Candidate], idf: Idf, tables: Tables, spaces: Mapping[int, Space]
    ) -> None:
        """As the protocol says; a failing embedder leaves the leg out, with a warning."""
        from jianmu.retrieval.late.words import content_words

        texts = {one.row.id: one.row.content for one in candidates if one.row.content}
        for space, ids in _by_space(one for one in candidates if one.row.id not in texts).items():
            texts.update(tables.contents(spaces[space], ids))
        try:
            scores = self.vectors.score(
                self.words,
                [idf(term) for term in self.terms],
                [content_words(texts.get(one.row.id, "")) for one in candidates],
                tables.words,
            )
        except EmbedderError as error:
            _log.warning("comparing word by word failed, going on without: %s", error)
            return
        for one, score in zip(candidates, scores, strict=True):
            one.late = None if score is None else max(score - _WORD_FLOOR, 0.0)


@dataclass(frozen=True, slots=True)
class TokenQuestion:
    """A question token by token; the tokens of a text were stored when it was written.

    Attributes:
        terms: What the word index calls the word of each token, None for a stop word.
        vectors: Unit vectors of the tokens.
        model: Id of the token embedder.
        floor: Similarity that a token finds in any text whatever.
    """

    terms: tuple[str | None, ...]
    vectors: npt.NDArray[np.float32]
    model: str
    floor: float
    leading: int = 300

    def compare(
        self, candidates: Sequence[Candidate], idf: Idf, tables: Tables, spaces: Mapping[int, Space]
    ) -> None:
        """As the protocol says; a short text that follows another is read together with it."""
        wanted = _by_space(candidates)
        for one in candidates:
            if one.row.before is not None:
                wanted[one.row.space].append(one.row.before)
        blobs: dict[int, bytes] = {}
        for space, ids in wanted.items():
            blobs.update(tables.tokens(spaces[space], self.model, ids))
        best = self._best(blobs)
        weights = self._weights(idf)
        for one in candidates:
            mine = best.get(one.row.id)
            if mine is None:
                continue
            before = best.get(one.row.before) if one.row.before is not None else None
            if before is not None and one.row.passages == 1:
                mine = mine.clip(min=_BEFORE_SHARE * before[-1:])
            one.late = max(float((mine @ weights).max()) - self.floor, 0.0)

    def _best(self, blobs: Mapping[int, bytes]) -> dict[int, npt.NDArray[np.float32]]:
        """For each text the best similarities: a row a passage, a column a token of the question."""
        import numpy as np

        from jianmu.retrieval.late.tokens import unpack_tokens
        from jianmu.retrieval.vectors import products, unit

        read = {id: unpack_tokens(blob, self.vectors.shape[1]) for id, blob in blobs.items()}
        filled = [(id, count) for id, (counts, _) in read.items() for count in counts if count]
        if not filled:
            return {}
        rows = unit(np.concatenate([cells for _, cells in read.values()]))
        starts = np.concatenate(([0], np.cumsum([count for _, count in filled])[:-1]))
        similarities = np.maximum.reduceat(products(rows, self.vectors), starts, axis=0)
        found: dict[int, list[npt.NDArray[np.float32]]] = {}
        for (id, _), row in zip(filled, similarities, strict=True):
            found.setdefault(id, []).append(row)
        return {id: np.stack(some) for id, some in found.items()}

    def _weights(self, idf: Idf) -> npt.NDArray[np.float32]:
        import numpy as np

        idfs = [None if term is None else idf(term) for term in self.terms]
        known = [value for value in idfs if value is not None]
        stop = _STOP_SHARE * sum(known) / len(known) if known else 1.0
        weights = np.array([stop if value is None else value for value in idfs], np.float32)
        return np.asarray(weights / weights.sum(), np.float32)


def word_by_word(query: str, analyzer: Analyzer, vectors: WordVectors) -> WordQuestion | None:
    """The question for this leg; None when it has no word, or holds a script without spaces."""
    from jianmu.retrieval.late.words import content_words

    words = tuple(dict.fromkeys(content_words(query)))[:_MOST_WORDS]
    return WordQuestion(words, tuple(map(analyzer.stem, words)), vectors) if words else None


def token_by_token(query: str, analyzer: Analyzer, embedder: TokenEmbedder) -> TokenQuestion | None:
    """The question for this leg; None when it holds a script without spaces, or nothing to compare.

    Raises:
        EmbedderError: The embedder returned what cannot be used.
    """
    from jianmu.retrieval.late.tokens import check_tokens

    if has_unspaced(query):
        return None
    ((words, vectors),) = check_tokens([embedder.embed_query_tokens(query)], 1, embedder)
    words, vectors = words[:_MOST_WORDS], vectors[:_MOST_WORDS]
    terms = tuple(None if word.casefold() in ENGLISH else analyzer.stem(word) for word in words)
    return (
        TokenQuestion(terms, vectors, embedder.id, float(getattr(embedder, "floor", 0.0))) if words else None
    )


def _by_space(candidates: Iterable[Candidate]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in candidates:
        found.setdefault(one.row.space, []).append(one.row.id)
    return found
