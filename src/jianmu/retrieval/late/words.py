"""Late interaction with any embedder that knows single words: each distinct word is embedded once.

Finds "clinic" for "hospital" where one vector a text has averaged the word away.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jianmu.retrieval.late.maxsim import max_sim
from jianmu.retrieval.scripts import has_unspaced
from jianmu.retrieval.stopwords import ENGLISH
from jianmu.retrieval.vectors import products

__all__ = ["Saved", "WordVectors", "content_words", "word_id"]

_WORDS = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_MOST_WORDS = 1_500
"""Words looked at in one text."""
_LONGEST = 40

Saved = Callable[[Sequence[int]], Mapping[int, bytes]]
"""Gives the vectors that are kept for these ids."""


def content_words(text: str) -> list[str]:
    """The words of a text as they are written, lower case, without stop words; none with an unspaced script.

    Pairs of Chinese characters, compared one by one, were measured to find nothing that the other legs miss.
    """
    words: list[str] = []
    if has_unspaced(text):
        return words
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if not word.isalnum():
            word = _POSSESSIVE.sub("", word)
        if word not in ENGLISH and len(word) <= _LONGEST:
            words.append(word)
            if len(words) == _MOST_WORDS:
                break
    return words


def word_id(word: str) -> int:
    """Eight bytes drawn from a word: what is kept beside its vector instead of the word."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), signed=True)


class WordVectors:
    """Vectors of words, embedded when first met and kept as int8; safe to share between threads.

    Args:
        embed: Gives one vector a word.
        limit: Words kept in memory; beyond, all are dropped and met anew.
    """

    def __init__(
        self, embed: Callable[[Sequence[str]], npt.NDArray[np.float32]], limit: int = 12_000
    ) -> None:
        self._embed = embed
        self._limit = limit
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}
        self._unsaved: set[str] = set()
        self._cells: npt.NDArray[np.int8] = np.empty((0, 0), np.int8)

    def score(
        self,
        question: Sequence[str],
        weights: Sequence[float],
        texts: Sequence[Sequence[str]],
        saved: Saved | None = None,
    ) -> list[float | None]:
        """How well each text, given as its words, meets a question: in [-1, 1], None without words.

        Args:
            question: Its words.
            weights: What each of them counts.
            texts: The words of each text.
            saved: Looks up vectors that were saved, by `word_id`.
        """
        distinct = {word: row for row, word in enumerate(dict.fromkeys(w for text in texts for w in text))}
        if not distinct or not question:
            return [None] * len(texts)
        vectors = self._vectors([*question, *distinct], saved)
        similarities = products(vectors[len(question) :], vectors[: len(question)])
        rows = [[distinct[word] for word in text] for text in texts]
        return max_sim(similarities, rows, np.asarray(weights, np.float32))

    def to_save(self, texts: Iterable[str], saved: Saved) -> list[tuple[int, bytes]]:
        """The words of `texts` whose vectors have not been saved yet: id and vector of each."""
        words = list(dict.fromkeys(word for text in texts for word in content_words(text)))
        with self._lock:
            self._meet(words, saved)
            new = [word for word in words if word in self._unsaved]
            self._unsaved.difference_update(new)
            return sorted((word_id(word), self._cells[self._rows[word]].tobytes()) for word in new)

    def _vectors(self, words: Sequence[str], saved: Saved | None) -> npt.NDArray[np.float32]:
        """Unit vectors of words, one row each."""
        with self._lock:
            self._meet(words, saved)
            cells = self._cells[[self._rows[word] for word in words]].astype(np.float32)
        norms = np.linalg.norm(cells, axis=1, keepdims=True)
        return np.asarray(cells / np.where(norms > 0, norms, 1), np.float32)

    def _meet(self, words: Iterable[str], saved: Saved | None) -> None:
        new = [word for word in dict.fromkeys(words) if word not in self._rows]
        if len(self._rows) + len(new) > self._limit:
            self._rows.clear()
            self._unsaved.clear()
            new = list(dict.fromkeys(words))
        if not new:
            return
        found = {} if saved is None else saved([word_id(word) for word in new])
        known = [word for word in new if word_id(word) in found]
        if known:
            blobs = b"".join(found[word_id(word)] for word in known)
            self._keep(known, np.frombuffer(blobs, np.int8).reshape(len(known), -1))
        unknown = [word for word in new if word not in self._rows]
        if unknown:
            vectors = self._embed(unknown)
            most = np.abs(vectors).max(axis=1, keepdims=True)
            self._keep(unknown, np.rint(vectors / np.where(most > 0, most, 1) * 127).astype(np.int8))
            self._unsaved.update(unknown)

    def _keep(self, words: Sequence[str], cells: npt.NDArray[np.int8]) -> None:
        first = len(self._rows)
        if first + len(words) > len(self._cells):
            room = np.empty(
                (max(first + len(words), min(first * 3 // 2, self._limit), 1_024), cells.shape[1]), np.int8
            )
            if first:
                room[:first] = self._cells[:first]
            self._cells = room
        self._cells[first : first + len(words)] = cells
        self._rows.update({word: first + at for at, word in enumerate(words)})
