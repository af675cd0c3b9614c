"""How fast the memory engine writes and searches, and what it takes; beside mem0 and LangGraph's stores.

    python benchmarks/retrieval_speed.py [--sizes 1000,10000,100000] [--peers] [--namespaces] [--json]

Texts are made of a Zipf vocabulary, about 73 characters each. Document vectors are made, not embedded, so
that every contestant gets the same ones for nothing; a search of ours pays for the default embedder's query
vector. Each size runs in a process of its own, whose peak resident memory is reported.
``--peers`` needs the `bench` dependency group and the extra ``mem0``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

DIMENSION = 512
BATCH = 500


def texts(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices("aeioubcdfghklmnprstvw", k=rng.randint(3, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=12)) for _ in range(count)]


def vectors(count: int, dimension: int = DIMENSION) -> Any:
    import numpy as np

    found = np.random.default_rng(0).standard_normal((count, dimension), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


class Made:
    """The default embedder for questions; made vectors for texts."""

    id, dimension, floor, ceiling = "bench-1", DIMENSION, 0.1, 0.7

    def __init__(self) -> None:
        from jianmu.retrieval import UseEmbedder

        self._use = UseEmbedder()
        self._use.embed_query("warm up")
        self._pool = vectors(4096)
        self._next = 0

    def embed_documents(self, some: Sequence[str]) -> Any:
        start, self._next = self._next, (self._next + len(some)) % 4096
        return self._pool[[(start + at) % 4096 for at in range(len(some))]]

    def embed_query(self, text: str) -> Any:
        return self._use.embed_query(text)


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p50_ms": statistics.median(ordered) * 1000,
        "p95_ms": ordered[int(len(ordered) * 0.95) - 1] * 1000,
    }


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def one_size(count: int, queries: int = 200) -> dict[str, Any]:
    from jianmu.memory import SqliteLongTermMemory

    embedder = Made()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        memory = SqliteLongTermMemory(path, embedder=embedder)
        everything = texts(count)
        start = time.perf_counter()
        for at in range(0, count, BATCH):
            memory.record_many([{"inputs": text} for text in everything[at : at + BATCH]])
        batch = time.perf_counter() - start
        singles = [timed(lambda text=text: memory.record(text)) for text in texts(50, seed=7)]
        asked = [" ".join(text.split()[2:7]) for text in random.Random(1).sample(everything, queries)]
        first = timed(lambda: memory.retrieve(asked[0]))
        found = [timed(lambda query=query: memory.retrieve(query, limit=10)) for query in asked]
        memory.close()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        "memories": count,
        "batch_per_s": count / batch,
        "single_ms": statistics.median(singles) * 1000,
        "first_ms": first * 1000,
        **percentiles(found),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "bytes_each": size / count,
    }


def many_namespaces(spaces: int = 10_000, each: int = 100) -> dict[str, Any]:
    from jianmu.memory import SqliteLongTermMemory

    result: dict[str, Any] = {}
    for count in (10, spaces):
        with tempfile.TemporaryDirectory() as folder:
            memory = SqliteLongTermMemory(Path(folder) / "memory.db", embedder=Made())
            everything = texts(each * 20)
            for space in range(count):
                rows = everything[(space % 20) * each : (space % 20 + 1) * each]
                memory.record_many([{"inputs": text, "namespace": (str(space),)} for text in rows])
            rng = random.Random(2)
            found = []
            for _ in range(200):
                space = rng.randrange(count)
                query = " ".join(rng.choice(everything[: each * 20]).split()[2:7])
                found.append(timed(partial(memory.retrieve, query, namespace=(str(space),), limit=10)))
            memory.close()
        result[str(count)] = percentiles(found)
    return {"each": each, "search": result}


def peers(count: int = 10_000, singles: int = 200, queries: int = 50) -> dict[str, Any]:
    """The same vectors and queries for all; rounds interleaved between contestants."""
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp(prefix="mem0-home-"))
    with tempfile.TemporaryDirectory() as folder:
        contestants = {name: make(Path(folder)) for name, make in _PEERS.items()}
        everything, extra = texts(count), texts(singles, seed=9)
        asked = [" ".join(t.split()[2:7]) for t in random.Random(1).sample(everything, queries)]
        rows: dict[str, dict[str, Any]] = {name: {} for name in contestants}
        for name, one in contestants.items():
            start = time.perf_counter()
            one.batch(everything)
            rows[name]["batch_per_s"] = count / (time.perf_counter() - start)
        writes: dict[str, list[float]] = {name: [] for name in contestants}
        reads: dict[str, list[float]] = {name: [] for name in contestants}
        for text in extra:
            for name, one in contestants.items():
                writes[name].append(timed(lambda one=one, text=text: one.write(text)))
        for query in asked:
            for name, one in contestants.items():
                reads[name].append(timed(lambda one=one, query=query: one.search(query)))
        for name in contestants:
            rows[name]["single_ms"] = statistics.median(writes[name]) * 1000
            rows[name].update(percentiles(reads[name]))
    return rows


class _Ours:
    def __init__(self, folder: Path) -> None:
        from jianmu.memory import SqliteLongTermMemory

        self.memory = SqliteLongTermMemory(folder / "ours.db", embedder=Pool())

    def batch(self, some: list[str]) -> None:
        for at in range(0, len(some), BATCH):
            self.memory.record_many([{"inputs": text} for text in some[at : at + BATCH]])

    def write(self, text: str) -> None:
        self.memory.record(text)

    def search(self, query: str) -> None:
        self.memory.retrieve(query, limit=10)


class Pool:
    """Made vectors for all."""

    id, dimension = "bench-pool", DIMENSION

    def __init__(self) -> None:
        self._pool = vectors(4096)
        self._next = 0

    def embed_documents(self, some: Sequence[str]) -> Any:
        start, self._next = self._next, (self._next + len(some)) % 4096
        return self._pool[[(start + at) % 4096 for at in range(len(some))]]

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


class _Mem0:
    store = "qdrant"

    def __init__(self, folder: Path) -> None:
        from mem0 import Memory

        place = {"path": str(folder / self.store), "collection_name": "memories"}
        if self.store == "qdrant":
            place |= {"embedding_model_dims": DIMENSION, "on_disk": True}  # type: ignore[dict-item]
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
        for text in some:
            self.write(text)

    def write(self, text: str) -> None:
        self.memory.add(text, user_id="u", infer=False)

    def search(self, query: str) -> None:
        self.memory.search(query, filters={"user_id": "u"}, top_k=10)


class _Mem0Chroma(_Mem0):
    store = "chroma"


class _LangGraph:
    def __init__(self, folder: Path) -> None:
        from langgraph.store.memory import InMemoryStore

        self._pool, self._number = Pool(), 0
        index: Any = {
            "dims": DIMENSION,
            "embed": lambda some: [list(map(float, v)) for v in self._pool.embed_documents(some)],
        }
        self.store: Any = InMemoryStore(index=index)

    def batch(self, some: list[str]) -> None:
        for text in some:
            self.write(text)

    def write(self, text: str) -> None:
        self._number += 1
        self.store.put(("u",), str(self._number), {"text": text})

    def search(self, query: str) -> None:
        self.store.search(("u",), query=query, limit=10)


class _LangGraphSqlite(_LangGraph):
    """Without vectors: this Python's sqlite3 loads no extension, which its index needs."""

    def __init__(self, folder: Path) -> None:
        import sqlite3

        from langgraph.store.sqlite import SqliteStore

        self._number = 0
        self.store = SqliteStore(
            sqlite3.connect(folder / "lg.db", isolation_level=None, check_same_thread=False)
        )
        self.store.setup()

    def search(self, query: str) -> None:
        self.store.search(("u",), limit=10)


_PEERS: dict[str, Callable[[Path], Any]] = {
    "jianmu sqlite": _Ours,
    "mem0 + qdrant": _Mem0,
    "mem0 + chroma": _Mem0Chroma,
    "langgraph InMemoryStore (RAM)": _LangGraph,
    "langgraph SqliteStore (no vectors)": _LangGraphSqlite,
}


def import_seconds() -> float:
    code = (
        "import time; start = time.perf_counter(); from jianmu.memory import SqliteLongTermMemory;"
        "print(time.perf_counter() - start)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--without", default="", help="peers whose name holds this are left out")
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_size(options.one)))
        return 0
    result: dict[str, Any] = {"import_s": import_seconds(), "sizes": []}
    for size in filter(None, options.sizes.split(",")):
        out = subprocess.check_output([sys.executable, __file__, "--one", size])
        result["sizes"].append(json.loads(out))
        if not options.json:
            print(
                "  ".join(
                    f"{k} {v:,.2f}" if isinstance(v, float) else f"{k} {v:,}"
                    for k, v in result["sizes"][-1].items()
                ),
                flush=True,
            )
    if options.namespaces:
        result["namespaces"] = many_namespaces()
    if options.peers:
        if options.without:
            for name in [name for name in _PEERS if options.without in name]:
                del _PEERS[name]
        result["peers"] = peers()
    if options.json:
        print(json.dumps(result))
        return 0
    print(f"import {result['import_s']:.3f} s")
    if options.namespaces:
        print("search in one namespace of 100, among so many:", result["namespaces"]["search"])
    for name, row in result.get("peers", {}).items():
        print(f"{name:<38}" + "  ".join(f"{key} {value:,.2f}" for key, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
