"""Sum of maximum similarities (Khattab and Zaharia, ColBERT, 2020), each word of a question by its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["CHUNK", "max_sim"]

CHUNK = 30
"""Words that are judged together: a long text counts by its best stretch, not by all it mentions."""


def max_sim(
    similarities: npt.NDArray[np.float32],
    texts: Sequence[Sequence[int] | npt.NDArray[np.intp]],
    weights: npt.NDArray[np.float32],
    chunk: int = CHUNK,
) -> list[float | None]:
    """The score of each text: the weighted mean, over the question's words, of the best similarity.

    Args:
        similarities: Cosines, one row a distinct word of the texts, one column a word of the question.
        texts: For each text, the rows of its words in order.
        weights: What each word of the question counts.
        chunk: The best stretch of so many words stands for a text.

    Returns:
        A score in [-1, 1] for each text, None for one without words.
    """
    scores: list[float | None] = [None] * len(texts)
    filled = [at for at, text in enumerate(texts) if len(text)]
    if not filled or not weights.sum() > 0:
        return scores
    lengths = [len(texts[at]) for at in filled]
    rows = np.concatenate([np.asarray(texts[at], np.intp) for at in filled])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    chunks = [
        range(int(start), int(start) + length, chunk) for start, length in zip(starts, lengths, strict=True)
    ]
    best = np.maximum.reduceat(similarities[rows], [at for some in chunks for at in some], axis=0)
    judged = best @ (weights / weights.sum())
    first = np.concatenate(([0], np.cumsum([len(some) for some in chunks])[:-1]))
    for at, score in zip(filled, np.maximum.reduceat(judged, first).tolist(), strict=True):
        scores[at] = score
    return scores
