"""Embedders of well-known libraries, each needing its package; models are loaded at construction.

The stored id names the model as it was given. For a model in a folder of yours give an `id` of your own, or
the index is tied to that path.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from jianmu.errors import ConfigError
from jianmu.retrieval.embedders.base import Vectors

__all__ = ["FastEmbedEmbedder", "Model2VecEmbedder", "SentenceTransformersEmbedder"]


class SentenceTransformersEmbedder:
    """A model of the ``sentence-transformers`` package.

    Args:
        model: A name or path, or a loaded ``SentenceTransformer``.
        id: The stored name; change it when the vectors change.
        query_prompt: Put before a question, e.g. ``"query: "`` for e5.
        document_prompt: Put before a text, e.g. ``"passage: "`` for e5.
        options: Passed on to ``SentenceTransformer(...)``.
    """

    def __init__(
        self,
        model: Any = "paraphrase-multilingual-MiniLM-L12-v2",
        *,
        id: str | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        **options: Any,
    ) -> None:
        name = model if isinstance(model, str) else _name_of(model)
        self._model = (
            _load("sentence_transformers", "sentence-transformers").SentenceTransformer(model, **options)
            if isinstance(model, str)
            else model
        )
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self.id = id or f"sentence-transformers:{name}" + _prompts(query_prompt, document_prompt)
        self.dimension = len(self.embed_query("dimension"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts, in order."""
        vectors: Vectors = self._model.encode(
            [self._document_prompt + text for text in texts],
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return vectors

    def embed_query(self, text: str) -> Sequence[float]:
        """The unit vector of a question."""
        vector: Sequence[float] = self._model.encode(
            [self._query_prompt + text], normalize_embeddings=True, show_progress_bar=False
        )[0]
        return vector


class FastEmbedEmbedder:
    """A model of the ``fastembed`` package (ONNX).

    Args:
        model: A name that fastembed supports, or a loaded ``TextEmbedding``.
        id: The stored name; change it when the vectors change.
        options: Passed on to ``TextEmbedding(...)``.
    """

    def __init__(
        self, model: Any = "BAAI/bge-small-en-v1.5", *, id: str | None = None, **options: Any
    ) -> None:
        name = model if isinstance(model, str) else _name_of(model)
        self._model = (
            _load("fastembed", "fastembed").TextEmbedding(model_name=model, **options)
            if isinstance(model, str)
            else model
        )
        self.id = id or f"fastembed:{name}"
        self.dimension = len(self.embed_query("dimension"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, in order."""
        return list(self._model.passage_embed(list(texts)))

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question."""
        vector: Sequence[float] = next(iter(self._model.query_embed(text)))
        return vector


class Model2VecEmbedder:
    """A static model of the ``model2vec`` package: very fast, word order unseen.

    Args:
        model: A name or path, or a loaded ``StaticModel``.
        id: The stored name; change it when the vectors change.
        options: Passed on to ``StaticModel.from_pretrained(...)``.
    """

    def __init__(
        self, model: Any = "minishlab/potion-multilingual-128M", *, id: str | None = None, **options: Any
    ) -> None:
        name = model if isinstance(model, str) else _name_of(model)
        self._model = (
            _load("model2vec", "model2vec").StaticModel.from_pretrained(model, **options)
            if isinstance(model, str)
            else model
        )
        self.id = id or f"model2vec:{name}"
        self.dimension = int(self._model.dim)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, in order."""
        vectors: Vectors = self._model.encode(list(texts))
        return vectors

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question."""
        return self.embed_documents([text])[0]


def _load(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(f"this embedder needs another package: pip install {package}") from error


def _name_of(model: Any) -> str:
    for attribute in ("model_name", "name_or_path", "base_model_name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__qualname__


def _prompts(query: str, document: str) -> str:
    return f"#{query}|{document}" if query or document else ""
