"""A token embedder for tests: a few words mean the same, any other word means only itself."""

from __future__ import annotations

import re
from zlib import crc32

import numpy as np

from jianmu.retrieval import CallableTokenEmbedder

ALIKE = {"clinic": "hospital", "puppy": "dog", "dogs": "dog"}


def alike(name: str = "alike", dimension: int = 32) -> CallableTokenEmbedder:
    def embed(texts: list[str]) -> list[tuple[list[str], np.ndarray]]:
        found = []
        for text in texts:
            words = re.findall(r"\w+|[^\w\s]", text.casefold())
            seeds = [crc32(f"{name} {ALIKE.get(word, word)}".encode()) for word in words]
            rows = [np.random.default_rng(seed).standard_normal(dimension) for seed in seeds]
            found.append((words, np.array(rows, np.float32).reshape(len(rows), dimension)))
        return found

    return CallableTokenEmbedder(embed, id=name, dimension=dimension, floor=0.2)
