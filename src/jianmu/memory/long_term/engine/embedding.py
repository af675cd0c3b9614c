"""From texts and questions to vectors, with every fault of an embedder named."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from jianmu.errors import EmbedderError, MissingExtraError
from jianmu.memory.long_term.engine.indexing import embedding_key, slots_of, texts_to_embed
from jianmu.memory.long_term.engine.items import Draft, Row
from jianmu.memory.long_term.engine.late import LateQuestion, token_by_token, word_by_word
from jianmu.memory.long_term.engine.searching import Question
from jianmu.retrieval.embedders.base import Embedder, check_vectors
from jianmu.retrieval.scripts import has_unspaced
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jianmu.retrieval.late.tokens import TokenEmbedder
    from jianmu.retrieval.late.words import WordVectors

__all__ = ["SlotVectors", "ask", "embed_texts", "slot_vectors", "token_vectors"]

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


def token_vectors(rows: Sequence[Row | Draft], embedder: TokenEmbedder | None) -> dict[bytes, bytes]:
    """Packed token vectors of texts, passage by passage, by `embedding_key`; none for unspaced scripts.

    Raises:
        EmbedderError: The embedder failed, or returned something that cannot be used.
    """
    if embedder is None or not rows:
        return {}
    from jianmu.retrieval.late.tokens import check_tokens, pack_tokens

    texts = {embedding_key(row): [] if has_unspaced(row.content) else texts_to_embed(row) for row in rows}
    flat = [text for some in texts.values() for text in some]
    vectors: list[npt.NDArray[np.float32]] = []
    for start in range(0, len(flat), _EMBEDDED_AT_ONCE):
        some = flat[start : start + _EMBEDDED_AT_ONCE]
        try:
            tokens = embedder.embed_document_tokens(some)
        except EmbedderError:
            raise
        except Exception as error:  # whatever a user's own embedder raises, it comes out as one kind
            raise EmbedderError(
                f"token embedder {embedder.id!r} failed; nothing was stored: {error}"
            ) from error
        vectors += [rows for _, rows in check_tokens(tokens, len(some), embedder)]
    found, at = {}, 0
    for key, passages in texts.items():
        found[key] = pack_tokens(vectors[at : at + len(passages)])
        at += len(passages)
    return found


def ask(
    query: str,
    analyzer: Analyzer,
    embedder: Embedder | None,
    today: date,
    words: WordVectors | None = None,
    late: TokenEmbedder | None = None,
) -> Question:
    """A question for both legs; if the embedder fails, for the words alone, with a warning.

    Raises:
        EmbedderError: It failed, and the question has no word to look up.
    """
    question = Question.of(analyzer, query, today)
    compared = _compared(query[:_QUESTION_CHARACTERS], analyzer, words, late)
    if embedder is None:
        return replace(question, late=compared)
    from jianmu.retrieval.vectors import unit

    try:
        vector = embedder.embed_query(query[:_QUESTION_CHARACTERS])
        check_vectors([vector], 1, embedder.dimension, embedder.id)
    except Exception as error:  # whatever it raises, the words can still answer
        if not question.terms:
            raise EmbedderError(f"embedder {embedder.id!r} failed: {error}") from error
        _log.warning("embedder %s failed, searching by words alone: %s", embedder.id, error)
        return question
    return replace(
        question,
        vector=unit(vector)[0],
        floor=float(getattr(embedder, "floor", 0.0)),
        ceiling=float(getattr(embedder, "ceiling", 1.0)),
        late=compared,
    )


def _compared(
    query: str, analyzer: Analyzer, words: WordVectors | None, late: TokenEmbedder | None
) -> LateQuestion | None:
    if late is not None:
        try:
            question = token_by_token(query, analyzer, late)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the other legs can still answer
            _log.warning("token embedder %s failed, searching without: %s", late.id, error)
        else:
            if question is not None:
                return question
    return None if words is None else word_by_word(query, analyzer, words)
