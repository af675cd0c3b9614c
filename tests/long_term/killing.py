"""Writers that are killed with -9, and what has to be true of what they leave behind, on any engine.

python -m tests.long_term.killing KIND WHERE NAME   # one writer, which prints each number it was promised
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from jianmu.memory import PostgresLongTermMemory, SqliteLongTermMemory
from jianmu.memory.long_term.engine.embedding import slot_vectors
from jianmu.memory.long_term.engine.indexing import context_terms, index_text
from jianmu.memory.long_term.engine.memory import EngineMemory
from jianmu.memory.long_term.engine.segments import unpack_row
from jianmu.memory.long_term.engine.tables import Tables
from jianmu.retrieval.bm25 import unpack
from jianmu.retrieval.embedders.base import Embedder
from jianmu.retrieval.tokens import Analyzer
from jianmu.retrieval.vectors import dequantize
from tests.long_term.embedders import hashed

ROOT = Path(__file__).parents[2]
HERE = ("n",)


def opened(kind: str, where: str, embedder: Embedder | None) -> EngineMemory:
    if kind == "sqlite":
        return SqliteLongTermMemory(where, embedder)
    return PostgresLongTermMemory(where, embedder)


def text_of(name: str, number: int) -> str:
    """One word stands in no other text."""
    return f"fact {name}n{number} about tea"


def key_of(name: str, number: int) -> str | None:
    """Every fourth fact supersedes the one before it under one key."""
    return f"{name} newest" if number % 4 == 3 else None


def start(kind: str, where: str, name: str, count: int = 1_000_000) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.long_term.killing", kind, where, name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def kill_writers(kind: str, where: str, kills: int, *, seed: int = 7) -> dict[str, int]:
    """Kill so many writers, each after some writes; for each name, how many writes it was promised."""
    chance = random.Random(seed)
    promised: dict[str, int] = {}
    for turn in range(kills):
        writer = start(kind, where, f"w{turn}")
        assert writer.stdout is not None
        for _ in range(chance.randint(1, 12)):
            assert writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        rest = [line for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        promised[f"w{turn}"] = _ + 1 + len(rest)
    return promised


def assert_promises_kept(kind: str, where: str, promised: dict[str, int]) -> None:
    """Every acknowledged write is there once and found; at most one more a kill; both legs agree."""
    with opened(kind, where, hashed()) as memory:
        assert_index_is_what_the_texts_say(memory)
        kept = [item["content"] for item in memory.list(HERE)]
        assert len(kept) == len(set(kept))
        current = set(kept)
        for name, count in promised.items():
            keyed = [text_of(name, n) for n in range(count) if key_of(name, n)]
            for number in range(count):
                if key_of(name, number) is None:
                    assert text_of(name, number) in current
            if keyed:
                history = [entry["content"] for entry in memory.history(f"{name} newest", namespace=HERE)]
                assert history[: len(keyed)] == keyed
                assert len(history) <= len(keyed) + 1
                assert history[-1] in current
        free = sum(1 for name, count in promised.items() for n in range(count) if not key_of(name, n))
        with_key = sum(1 for count in promised.values() if count >= 4)
        assert free + with_key <= len(kept) <= free + with_key + len(promised)
    with opened(kind, where, None) as words:
        for text in kept:
            assert words.retrieve(text.split()[1], namespace=HERE, limit=1)[0]["content"] == text


def assert_index_is_what_the_texts_say(memory: EngineMemory) -> None:
    """Words, vectors, counters and links are exactly those that the stored texts give when indexed anew."""
    memory._database.read(lambda tables: _compare(tables, memory.embedder))


def _compare(tables: Tables, embedder: Embedder | None) -> None:
    analyzer = Analyzer()
    for space in tables.spaces("", deep=True):
        rows = {row.id: row for row in tables.everything(space, -1, 2**31)}
        expected: dict[int, set[str]] = {}
        owners: dict[int, int] = {}
        words = 0
        for row in rows.values():
            before = [] if row.before is None else context_terms(analyzer, rows[row.before].content)
            passages = index_text(analyzer, row, before)
            first = row.slot + row.passages - len(passages)
            expected |= {slot: passage.terms() for slot, passage in enumerate(passages, first)}
            owners |= {row.slot + at: row.id for at in range(row.passages)}
            words += sum(passage.length for passage in passages)
            assert row.before is None or rows[row.before].after == row.id
            assert row.after is None or rows[row.after].before == row.id
        posted: dict[int, set[str]] = defaultdict(set)
        for (packed,) in tables.all("SELECT entries FROM memory_posting WHERE space = ?", (space.id,)):
            for term, entries in unpack_row(packed).items():
                for posting in unpack(entries):
                    assert term not in posted[posting.slot]
                    posted[posting.slot].add(term)
        assert posted == expected
        stored = tables.all("SELECT slot, item, vector FROM memory_passage WHERE space = ?", (space.id,))
        assert {slot: item for slot, item, _ in stored} == owners
        assert (space.documents, space.words) == (len(expected), words)
        vectors = {slot: vector for slot, _, vector in stored}
        fresh = slot_vectors(list(rows.values()), embedder)
        for row in rows.values():
            for at, vector in enumerate(fresh.get(row.digest, ())):
                assert vector is not None
                assert np.allclose(dequantize(vector), dequantize(vectors[row.slot + at]), atol=1e-6)


def main() -> None:
    kind, where, name, count = sys.argv[1:]
    with opened(kind, where, hashed()) as memory:
        for number in range(int(count)):
            memory.record(text_of(name, number), namespace=HERE, session=name, key=key_of(name, number))
            print(number, flush=True)


if __name__ == "__main__":
    main()
