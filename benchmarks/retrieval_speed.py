"""How fast the memory engine writes and searches, and what it takes; beside mem0 and LangGraph's stores.

`make bench-memory`, or `python benchmarks/retrieval_speed.py [--sizes 1000,10000,100000] [--peers 10000]
[--namespaces] [--json FILE] [--plot FILE.svg]`. Each size is written in a process of its own and searched in
another, whose peak resident memories are reported; document vectors are made, not embedded, and a search pays
for the default embedder's query vector. Among the peers everybody gets the same made vectors, and they take
turns write by write and search by search, so that all meet the same machine; one flush of the disk and a
fixed piece of arithmetic are timed at each turn and stand beside the figures.
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
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memory_contenders import CONTENDERS, DIMENSION, texts, vectors

BATCH = 1_000


class Made:
    """The default embedder for questions; made vectors for texts."""

    id, dimension, floor, ceiling = "bench-1", DIMENSION, 0.1, 0.7
    embeds_words = True

    def __init__(self) -> None:
        from jianmu.retrieval import UseEmbedder

        self._use = UseEmbedder()
        self._use.embed_query("warm up")
        self._pool = vectors(4096)
        self._next = 0

    def embed_documents(self, some: Sequence[str]) -> Any:
        if all(" " not in text for text in some):  # single words, as a search compares them
            return self._use.embed_documents(some)
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
        memory = SqliteLongTermMemory(path, embedder)
        made = texts(count + 50)  # one vocabulary, as one user's memories have
        everything, later = made[:count], made[count:]
        start = time.perf_counter()
        for at in range(0, count, BATCH):
            memory.record_many([{"inputs": text} for text in everything[at : at + BATCH]])
        batch = time.perf_counter() - start
        singles = [timed(lambda text=text: memory.record(text)) for text in later]
        asked = [" ".join(text.split()[2:7]) for text in random.Random(1).sample(everything, queries)]
        memory.close()
        command = [sys.executable, __file__, "--search", str(path)]
        found = json.loads(subprocess.check_output(command, input=json.dumps(asked).encode()))
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        "memories": count,
        "batch_per_s": count / batch,
        "single_ms": statistics.median(singles) * 1000,
        **found,
        "writer_rss_mb": peak_mb(),
        "bytes_each": size / count,
    }


def search(path: Path, asked: list[str]) -> dict[str, Any]:
    """What a process sees that opens a memory and searches it."""
    from jianmu.memory import SqliteLongTermMemory

    with SqliteLongTermMemory(path, Made()) as memory:
        first = timed(lambda: memory.retrieve(asked[0]))
        found = [timed(lambda query=query: memory.retrieve(query, limit=10)) for query in asked]
    return {"first_ms": first * 1000, **percentiles(found), "rss_mb": peak_mb()}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def peers(count: int, left_out: str, singles: int = 200, queries: int = 100) -> dict[str, dict[str, Any]]:
    """Everybody takes turns: batches, then single writes, then searches."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    chosen = {name: make for name, make in CONTENDERS.items() if not left_out or left_out not in name}
    with tempfile.TemporaryDirectory() as folder:
        everyone = {name: make(Path(folder)) for name, make in chosen.items()}
        everything = texts(count)
        asked = [" ".join(t.split()[2:7]) for t in random.Random(1).sample(everything, queries)]
        turns: list[tuple[str, str, Any]] = [
            *(("batch", "batch", everything[at : at + BATCH]) for at in range(0, count, BATCH)),
            *(("write", "write", text) for text in texts(singles, seed=9)),
            *(("search", "search", query) for query in asked),
        ]
        descriptor = os.open(Path(folder) / "flush", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        for kind, method, value in turns:
            for name, one in everyone.items():
                times[name][kind].append(timed(partial(getattr(one, method), value)))
            times["one flush"][kind].append(timed(partial(flush, descriptor)))
            times["fixed arithmetic"][kind].append(timed(lambda: sum(range(200_000))))
        os.close(descriptor)
        for name, one in everyone.items():
            assert one.search(asked[0]) == 10, f"{name} found too little"
            one.close()
    rows = {name: figures(times[name]) | {"durable": one.durable} for name, one in everyone.items()}
    for name in ("one flush", "fixed arithmetic"):
        whole = [second for some in times[name].values() for second in some]
        rows[name] = percentiles(whole)
    return rows


def figures(found: dict[str, list[float]]) -> dict[str, Any]:
    """Medians over the turns."""
    return {
        "batch_per_s": BATCH / statistics.median(found["batch"]),
        "write_ms": statistics.median(found["write"]) * 1000,
        "write_p95_ms": percentiles(found["write"])["p95_ms"],
        "search_ms": statistics.median(found["search"]) * 1000,
        "search_p95_ms": percentiles(found["search"])["p95_ms"],
    }


def flush(descriptor: int) -> None:
    os.write(descriptor, b"x" * 4096)
    os.fsync(descriptor)


def import_seconds() -> float:
    code = (
        "import time; start = time.perf_counter(); from jianmu.memory import SqliteLongTermMemory;"
        "print(time.perf_counter() - start)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))


def show(result: dict[str, Any]) -> None:
    print(f"import {result['import_s']:.3f} s")
    for row in result["sizes"]:
        print("  ".join(f"{k} {v:,.2f}" if isinstance(v, float) else f"{k} {v:,}" for k, v in row.items()))
    if "namespaces" in result:
        print("search in one namespace of 100, among so many:", result["namespaces"]["search"])
    for name, row in result.get("peers", {}).items():
        cells = (f"{key} {value:,.2f}" if isinstance(value, float) else value for key, value in row.items())
        print(f"{name:<26}" + "  ".join(cells))


def plot(result: dict[str, Any], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = {name: row for name, row in result["peers"].items() if "search_ms" in row}
    canvas, axes = pyplot.subplots(1, 3, figsize=(9.5, 2.9), sharey=True)
    titles = {
        "batch_per_s": "batches, memories/s",
        "write_ms": "one write, ms",
        "search_ms": "one search, ms",
    }
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        colours = ["tab:green" if name.startswith("jianmu") else "tab:grey" for name in rows]
        bars = axis.barh(list(rows), [row[key] for row in rows.values()], color=colours)
        axis.bar_label(bars, fmt="{:,.3g}", padding=2, fontsize=8)
        axis.set(title=title, xscale="log")
        axis.margins(x=0.3)
        axis.title.set_fontsize(9)
    axes[0].invert_yaxis()
    canvas.tight_layout()
    canvas.savefig(target, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--peers", type=int, default=0, metavar="MEMORIES")
    parser.add_argument("--without", default="", help="peers whose name holds this are left out")
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_size(options.one)))
        return 0
    if options.search:
        print(json.dumps(search(options.search, json.load(sys.stdin))))
        return 0
    result: dict[str, Any] = {"import_s": import_seconds(), "sizes": []}
    for size in filter(None, options.sizes.split(",")):
        out = subprocess.check_output([sys.executable, __file__, "--one", size])
        result["sizes"].append(json.loads(out))
    if options.namespaces:
        result["namespaces"] = many_namespaces()
    if options.peers:
        result["peers"] = peers(options.peers, options.without)
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1), "utf-8")
    if options.plot:
        plot(result, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
