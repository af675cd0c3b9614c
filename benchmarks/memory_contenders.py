"""The long-term memories that `retrieval_speed.py` lets take turns: ours, mem0's, LangGraph's.

All get the same made vectors for nothing. Each keeps its shipped durability, which its `durable` tells.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

DIMENSION = 512


def texts(count: int, seed: int = 0) -> list[str]:
    """Twelve words of a Zipf vocabulary each, about 73 characters."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("aeioubcdfghklmnprstvw", k=rng.randint(3, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=12)) for _ in range(count)]


def vectors(count: int, dimension: int = DIMENSION) -> Any:
    import numpy as np

    found = np.random.default_rng(0).standard_normal((count, dimension), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


class Pool:
    """Made vectors, the same sequence for every contender."""

    id, dimension = "bench-pool", DIMENSION

    def __init__(self) -> None:
        self._pool = vectors(4096)
        self._next = 0

    def embed_documents(self, some: Sequence[str]) -> Any:
        start, self._next = self._next, (self._next + len(some)) % 4096
        return self._pool[[(start + at) % 4096 for at in range(len(some))]]

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


class Jianmu:
    """A commit with a flush each write; a batch is one transaction."""

    durable = "flush a write"

    def __init__(self, folder: Path) -> None:
        from jianmu.memory import SqliteLongTermMemory

        self.memory = SqliteLongTermMemory(folder / "ours.db", embedder=Pool())

    def batch(self, some: list[str]) -> None:
        self.memory.record_many([{"inputs": text} for text in some])

    def write(self, text: str) -> None:
        self.memory.record(text)

    def search(self, query: str) -> int:
        return len(self.memory.retrieve(query, limit=10))

    def close(self) -> None:
        self.memory.close()


class Mem0:
    """``infer=False``: it stores each message of a batch by itself, there is no faster verbatim path."""

    durable = "flush a write"
    store = "qdrant"

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp(prefix="mem0-home-"))
        from mem0 import Memory

        place: dict[str, Any] = {"path": str(folder / self.store), "collection_name": "memories"}
        if self.store == "qdrant":
            place |= {"embedding_model_dims": DIMENSION, "on_disk": True}
        served = {"api_key": "none", "openai_base_url": "http://127.0.0.1:9/v1"}
        self.memory = Memory.from_config(
            {
                "vector_store": {"provider": self.store, "config": place},
                "embedder": {"provider": "openai", "config": {**served, "embedding_dims": DIMENSION}},
                "llm": {"provider": "openai", "config": served},
                "history_db_path": str(folder / f"{self.store}-history.db"),
            }
        )
        pool = Pool()
        self.memory.embedding_model.embed = lambda text, action=None: pool.embed_query(text).tolist()
        self.memory.embedding_model.embed_batch = lambda some, action=None: pool.embed_documents(
            some
        ).tolist()

    def batch(self, some: list[str]) -> None:
        messages = [{"role": "user", "content": text} for text in some]
        self.memory.add(messages, user_id="u", infer=False)

    def write(self, text: str) -> None:
        self.memory.add(text, user_id="u", infer=False)

    def search(self, query: str) -> int:
        found = self.memory.search(query, filters={"user_id": "u"}, top_k=10, threshold=0.0)
        return len(found["results"])

    def close(self) -> None:
        close = getattr(self.memory, "close", None)
        if close is not None:
            close()


class Mem0Chroma(Mem0):
    store = "chroma"


class InMemoryStore:
    """Keeps nothing: for scale only."""

    durable = "no: RAM"

    def __init__(self, folder: Path) -> None:
        from langgraph.store.memory import InMemoryStore

        self._number = 0
        self.store: Any = InMemoryStore(index=self._index())

    def _index(self) -> Any:
        pool = Pool()
        return {"dims": DIMENSION, "embed": lambda some: pool.embed_documents(some).tolist()}

    def batch(self, some: list[str]) -> None:
        from langgraph.store.base import PutOp

        self.store.batch([PutOp(("u",), self._key(), {"text": text}) for text in some])

    def write(self, text: str) -> None:
        self.store.put(("u",), self._key(), {"text": text})

    def search(self, query: str) -> int:
        return len(self.store.search(("u",), query=query, limit=10))

    def close(self) -> None:
        """Nothing is open."""

    def _key(self) -> str:
        self._number += 1
        return str(self._number)


class SqliteStore(InMemoryStore):
    """On a SQLite that loads extensions (``pysqlite3-binary``), which its vector index needs."""

    durable = "flush a write"

    def __init__(self, folder: Path) -> None:
        import pysqlite3
        from langgraph.store.sqlite import SqliteStore

        self._number = 0
        self._connection = pysqlite3.connect(
            str(folder / "lg.db"), isolation_level=None, check_same_thread=False
        )
        self.store = SqliteStore(self._connection, index=self._index())
        self.store.setup()

    def close(self) -> None:
        self._connection.close()


CONTENDERS: dict[str, Callable[[Path], Any]] = {
    "jianmu sqlite": Jianmu,
    "mem0 + qdrant": Mem0,
    "mem0 + chroma": Mem0Chroma,
    "langgraph SqliteStore": SqliteStore,
    "langgraph InMemoryStore": InMemoryStore,
}
