"""An embedder for tests: words hashed into a vector, so that common words mean common direction."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from jianmu.retrieval.embedders.base import CallableEmbedder
from jianmu.retrieval.tokens import Analyzer


def hashed(dimension: int = 64, name: str = "hashed") -> CallableEmbedder:
    analyzer = Analyzer()

    def embed(texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for term in analyzer.terms(text.encode("utf-8", "replace").decode()):
                code = crc32(term.text.encode())
                row[code % dimension] += 1 if code & 1 << 20 else -1
        return rows

    return CallableEmbedder(embed, id=name, dimension=dimension, floor=0.2)
