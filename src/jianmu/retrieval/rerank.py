"""A second look at the best hits, by something slower and better than the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["Reranker"]


@runtime_checkable
class Reranker(Protocol):
    """Scores texts against a question, e.g. a cross-encoder or a call of a model."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One score in [0, 1] for each text, higher is better."""
        ...
