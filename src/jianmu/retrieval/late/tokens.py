"""What a token embedder is: one vector a token, to compare a question with a text token by token."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jianmu.errors import ConfigError, EmbedderError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "CallableTokenEmbedder",
    "TokenEmbedder",
    "TokenEmbedderChoice",
    "Tokens",
    "check_tokens",
    "choose_token_embedder",
    "pack_tokens",
    "unpack_tokens",
]

_MOST_TOKENS = 0xFFFF


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text.

    Attributes:
        words: For each token the word of the text that it is, or is part of; "" for one that is no word, such
            as an end marker. Only words are compared.
        vectors: One row a token, of the embedder's dimension; of any length, only the direction counts.
    """

    words: Sequence[str]
    vectors: Sequence[Sequence[float]]


@runtime_checkable
class TokenEmbedder(Protocol):
    """Texts to one vector a token (late interaction: Khattab and Zaharia, ColBERT, 2020).

    Attributes:
        id: Names the model and everything that changes its vectors; stored with the index.
        dimension: Length of a vector; a byte of storage each.

    An optional attribute `floor` (default 0.0) is the similarity that a token finds in any text whatever.
    """

    @property
    def id(self) -> str:
        """The stored name."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed_document_tokens(self, texts: Sequence[str]) -> Sequence[Tokens]:
        """The tokens of texts to be found, in order."""
        ...

    def embed_query_tokens(self, text: str) -> Tokens:
        """The tokens of a question."""
        ...


TokenFunction = Callable[[list[str]], Sequence[tuple[Sequence[str], Sequence[Sequence[float]]]]]
TokenEmbedderChoice = TokenEmbedder | str | None
"""A token embedder, "auto" for the one that is recorded with the index if any, or None for none."""


class CallableTokenEmbedder:
    """A token embedder made of a function from a list of texts to a list of (words, vectors).

    Args:
        function: Called with a non-empty list of texts; `words` and `vectors` as in `Tokens`.
        id: The stored name; change it when the vectors change.
        dimension: Length of a vector.
        floor: Similarity that a token finds in any text whatever.
    """

    def __init__(self, function: TokenFunction, *, id: str, dimension: int, floor: float = 0.0) -> None:
        self._function = function
        self.id = id
        self.dimension = dimension
        self.floor = floor

    def embed_document_tokens(self, texts: Sequence[str]) -> Sequence[Tokens]:
        """The tokens of texts, in order."""
        return [Tokens(words, vectors) for words, vectors in self._function(list(texts))]

    def embed_query_tokens(self, text: str) -> Tokens:
        """The tokens of a question."""
        return self.embed_document_tokens([text])[0]


def choose_token_embedder(choice: TokenEmbedderChoice, recorded: str | None) -> TokenEmbedder | None:
    """The token embedder that `choice` stands for; "auto" never picks one for an index that has none.

    Raises:
        ConfigError: `choice` is none of these.
    """
    if choice is None:
        return None
    if isinstance(choice, str):
        if choice != "auto":
            raise ConfigError(f'late_interaction={choice!r}: give a token embedder, "auto" or None')
        if recorded is None:
            return None
        from jianmu.retrieval.late.colbert import ColbertEmbedder

        return ColbertEmbedder() if recorded == ColbertEmbedder.id and ColbertEmbedder.installed() else None
    if isinstance(choice, TokenEmbedder):
        return choice
    raise ConfigError(
        f'late_interaction is a {type(choice).__name__}: give a token embedder, "auto" or None'
        " (a function goes into CallableTokenEmbedder)"
    )


def check_tokens(
    found: Sequence[Tokens], count: int, embedder: TokenEmbedder
) -> list[tuple[list[str], npt.NDArray[np.float32]]]:
    """Words and unit vectors of each text, without tokens that are no words.

    Raises:
        EmbedderError: A wrong number of texts or vectors, a wrong length, or no finite number.
    """
    import numpy as np

    from jianmu.retrieval.vectors import unit

    if len(found) != count:
        raise EmbedderError(f"token embedder {embedder.id!r} returned {len(found)} texts for {count}")
    checked: list[tuple[list[str], npt.NDArray[np.float32]]] = []
    for tokens in found:
        matrix = np.asarray(tokens.vectors, np.float32)
        if not tokens.words and not len(matrix):
            checked.append(([], np.zeros((0, embedder.dimension), np.float32)))
            continue
        if matrix.shape != (len(tokens.words), embedder.dimension):
            raise EmbedderError(
                f"token embedder {embedder.id!r} returned vectors of shape {matrix.shape} for"
                f" {len(tokens.words)} tokens of dimension {embedder.dimension}"
            )
        if not np.isfinite(matrix).all():
            raise EmbedderError(f"token embedder {embedder.id!r} returned NaN or infinite values")
        kept = [at for at, word in enumerate(tokens.words) if re.search(r"[^\W_]", word)][:_MOST_TOKENS]
        checked.append(([tokens.words[at] for at in kept], unit(matrix)[kept]))
    return checked


def pack_tokens(passages: Sequence[npt.NDArray[np.float32]]) -> bytes:
    """Vectors of a text's passages: their number, the tokens of each (16 bits each), then int8 rows."""
    import numpy as np

    counts = [len(passage) for passage in passages]
    head = struct.pack(f"<{len(counts) + 1}H", len(counts), *counts)
    if not sum(counts):
        return head
    rows = np.concatenate(passages)
    most = np.abs(rows).max(axis=1, keepdims=True)
    return head + np.rint(rows / np.where(most > 0, most, 1) * 127).astype(np.int8).tobytes()


def unpack_tokens(blob: bytes, dimension: int) -> tuple[list[int], npt.NDArray[np.int8]]:
    """The reverse of `pack_tokens`: tokens of each passage, and their rows one after the other."""
    import numpy as np

    (passages,) = struct.unpack_from("<H", blob)
    counts = list(struct.unpack_from(f"<{passages}H", blob, 2))
    cells = np.frombuffer(blob, np.int8, offset=2 + 2 * passages)
    return counts, cells.reshape(sum(counts), dimension)
