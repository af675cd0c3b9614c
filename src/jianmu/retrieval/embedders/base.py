"""What an embedder is, and how a name or a callable becomes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

__all__ = ["CallableEmbedder", "Embedder", "EmbedderChoice", "Vectors", "check_vectors"]

from jianmu.errors import EmbedderError

Vectors = Sequence[Sequence[float]]
"""One vector a text; a numpy array of shape (texts, dimension) is one too."""


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors that lie close when the meanings do.

    Attributes:
        id: Names the model and everything that changes its vectors; stored with the index.
        dimension: Length of a vector. Reading it may load the model.

    Two optional attributes describe its cosines, which differ widely between models: `floor` (default
    0.0), below which a cosine means nothing, and `ceiling` (default 1.0), from which on it means the same
    thing said twice. A third, `embeds_words` (default False), says that single words have useful vectors
    and cost next to nothing, so that a search may compare word by word as well.
    """

    @property
    def id(self) -> str:
        """The stored name."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found, in order."""
        ...

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question."""
        ...


EmbedderChoice = Embedder | Callable[[list[str]], Vectors] | str | None
"""An embedder, a function over a list of texts, "auto", or None for words only."""


class CallableEmbedder:
    """An embedder made of a function from a list of texts to a list of vectors.

    Args:
        function: Called with a non-empty list of texts.
        id: The stored name; change it when the vectors change.
        dimension: Length of a vector; None asks the function once.
        floor: Cosine below which nothing is meant.
        ceiling: Cosine of the same thing said twice.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Vectors],
        *,
        id: str | None = None,
        dimension: int | None = None,
        floor: float = 0.0,
        ceiling: float = 1.0,
    ) -> None:
        self._function = function
        self._dimension = dimension
        self.id = id or f"callable:{getattr(function, '__qualname__', type(function).__qualname__)}"
        self.floor = floor
        self.ceiling = ceiling

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        if self._dimension is None:
            self._dimension = len(self._function(["dimension"])[0])
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, in order."""
        return self._function(list(texts))

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question."""
        return self._function([text])[0]


def check_vectors(vectors: Vectors, count: int, dimension: int, embedder_id: str) -> None:
    """Refuse what an index could not use.

    Raises:
        EmbedderError: A wrong number of vectors, a wrong length, or a value that is no finite number.
    """
    import numpy as np

    try:
        matrix = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(
            f"embedder {embedder_id!r} returned something that is no matrix of numbers"
        ) from error
    if matrix.shape != (count, dimension):
        raise EmbedderError(
            f"embedder {embedder_id!r} returned vectors of shape {matrix.shape} for {count} texts;"
            f" expected ({count}, {dimension})"
        )
    if not np.isfinite(matrix).all():
        raise EmbedderError(f"embedder {embedder_id!r} returned NaN or infinite values")
