"""From texts and questions to vectors, with every fault of an embedder named."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jianmu.errors import EmbedderError, MissingExtraError
from jianmu.memory.long_term.engine.indexing import embedding_key, slots_of, texts_to_embed
from jianmu.memory.long_term.engine.items import Draft, Row
from jianmu.memory.long_term.engine.late import word_by_word
from jianmu.memory.long_term.engine.searching import Question
from jianmu.retrieval.embedders.base import Embedder, check_vectors
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jianmu.retrieval.late.words import WordVectors

__all__ = ["SlotVectors", "ask", "embed_texts", "slot_vectors"]

_log = logging.getLogger("jianmu.memory.long_term")
_EMBEDDED_AT_ONCE = 256
_QUESTION_CHARACTERS = 8_000

SlotVectors = Mapping[bytes, Sequence[bytes | None]]
"""The quantized vectors of each text's slots, by `embedding_key`."""


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Vectors as one array.

    Raises:
        EmbedderError: The embedder failed, or returned something that is no vector.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("Search by meaning", "local") from error
    parts = []
    for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
        some = list(texts[start : start + _EMBEDDED_AT_ONCE])
        try:
            vectors = embedder.embed_documents(some)
        except EmbedderError:
            raise
        except Exception as error:  # whatever a user's own embedder raises, it comes out as one kind
            raise EmbedderError(f"embedder {embedder.id!r} failed; nothing was stored: {error}") from error
        check_vectors(vectors, len(some), embedder.dimension, embedder.id)
        parts.append(np.asarray(vectors, np.float32))
    return np.concatenate(parts)


def slot_vectors(rows: Sequence[Row | Draft], embedder: Embedder | None) -> SlotVectors:
    """The vectors of texts; a text of several passages has one more, for the whole, in front.

    Raises:
        EmbedderError: As for `embed_texts`.
    """
    if embedder is None or not rows:
        return {}
    from jianmu.retrieval.vectors import quantize, unit

    texts = {embedding_key(row): texts_to_embed(row) for row in rows}
    vectors = unit(embed_texts(embedder, [text for some in texts.values() for text in some]))
    packed = quantize(vectors)
    found: dict[bytes, Sequence[bytes | None]] = {}
    at = 0
    for key, some in texts.items():
        here = slice(at, at + len(some))
        at += len(some)
        whole = quantize(vectors[here].mean(axis=0)) if slots_of(len(some)) > len(some) else []
        found[key] = whole + packed[here]
    return found


def ask(
    query: str, analyzer: Analyzer, embedder: Embedder | None, words: WordVectors | None = None
) -> Question:
    """A question for both legs; if the embedder fails, for the words alone, with a warning.

    Raises:
        EmbedderError: It failed, and the question has no word to look up.
    """
    question = Question.of(analyzer, query)
    if embedder is None:
        return question
    from jianmu.retrieval.vectors import unit

    try:
        vector = embedder.embed_query(query[:_QUESTION_CHARACTERS])
        check_vectors([vector], 1, embedder.dimension, embedder.id)
    except Exception as error:  # whatever it raises, the words can still answer
        if not question.terms:
            raise EmbedderError(f"embedder {embedder.id!r} failed: {error}") from error
        _log.warning("embedder %s failed, searching by words alone: %s", embedder.id, error)
        return question
    return Question(
        question.terms,
        question.dates,
        unit(vector)[0],
        float(getattr(embedder, "floor", 0.0)),
        float(getattr(embedder, "ceiling", 1.0)),
        None if words is None else word_by_word(query[:_QUESTION_CHARACTERS], analyzer, words),
    )
