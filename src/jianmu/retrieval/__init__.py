"""Retrieval for memory and documents: words, embedders, fusion. Each name is loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jianmu.retrieval.embedders.base import CallableEmbedder as CallableEmbedder
    from jianmu.retrieval.embedders.base import Embedder as Embedder
    from jianmu.retrieval.embedders.http import OpenAIEmbedder as OpenAIEmbedder
    from jianmu.retrieval.embedders.libraries import FastEmbedEmbedder as FastEmbedEmbedder
    from jianmu.retrieval.embedders.libraries import Model2VecEmbedder as Model2VecEmbedder
    from jianmu.retrieval.embedders.libraries import (
        SentenceTransformersEmbedder as SentenceTransformersEmbedder,
    )
    from jianmu.retrieval.embedders.use import UseEmbedder as UseEmbedder
    from jianmu.retrieval.late.colbert import ColbertEmbedder as ColbertEmbedder
    from jianmu.retrieval.late.tokens import CallableTokenEmbedder as CallableTokenEmbedder
    from jianmu.retrieval.late.tokens import TokenEmbedder as TokenEmbedder
    from jianmu.retrieval.late.tokens import Tokens as Tokens
    from jianmu.retrieval.rerank import Reranker as Reranker
    from jianmu.retrieval.tokens import Analyzer as Analyzer
    from jianmu.retrieval.words import WordIndex as WordIndex

_HOMES = {
    "Analyzer": "jianmu.retrieval.tokens",
    "CallableEmbedder": "jianmu.retrieval.embedders.base",
    "CallableTokenEmbedder": "jianmu.retrieval.late.tokens",
    "ColbertEmbedder": "jianmu.retrieval.late.colbert",
    "Embedder": "jianmu.retrieval.embedders.base",
    "FastEmbedEmbedder": "jianmu.retrieval.embedders.libraries",
    "Model2VecEmbedder": "jianmu.retrieval.embedders.libraries",
    "OpenAIEmbedder": "jianmu.retrieval.embedders.http",
    "Reranker": "jianmu.retrieval.rerank",
    "SentenceTransformersEmbedder": "jianmu.retrieval.embedders.libraries",
    "TokenEmbedder": "jianmu.retrieval.late.tokens",
    "Tokens": "jianmu.retrieval.late.tokens",
    "UseEmbedder": "jianmu.retrieval.embedders.use",
    "WordIndex": "jianmu.retrieval.words",
}

__all__ = [
    "Analyzer",
    "CallableEmbedder",
    "CallableTokenEmbedder",
    "ColbertEmbedder",
    "Embedder",
    "FastEmbedEmbedder",
    "Model2VecEmbedder",
    "OpenAIEmbedder",
    "Reranker",
    "SentenceTransformersEmbedder",
    "TokenEmbedder",
    "Tokens",
    "UseEmbedder",
    "WordIndex",
]


if not TYPE_CHECKING:  # a checker would take any name at all for a part of the module

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
