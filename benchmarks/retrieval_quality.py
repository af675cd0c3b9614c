"""How well the shipped configuration finds evidence, beside simpler ways; one table a data set.

    python benchmarks/retrieval_quality.py --data PATH [--data PATH ...] [--ablation] [--json]

A PATH is a LoCoMo file (JSON list of conversations), a file of `long_chats.py`, or a folder of
``*.turns.jsonl`` with ``*.questions.jsonl`` (MemoryBank); without one, that is said and nothing runs.
Everything goes through the public `record_many` and `retrieve`. Figures are percent: recall and nDCG at 10
(nDCG against the true ideal), hit@k (any evidence among k), MRR, and sessions: any session of the evidence
among the first five sessions of the ten hits. Intervals are 95 % by bootstrap over questions; below the
table stand recall by kind of question and by whose message the evidence is. Milliseconds are medians.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from jianmu.memory import SimpleStore, SqliteLongTermMemory
from jianmu.memory.long_term.engine import searching
from jianmu.memory.long_term.engine.ranking import LEXICAL, SEMANTIC, WORD_BY_WORD, Weights
from jianmu.retrieval import ColbertEmbedder, UseEmbedder
from retrieval_sets import Asked, Haystack, load

K = 10
RESAMPLED = 1_000
NAMES = ("LEXICAL", "SEMANTIC", "WORD_BY_WORD", "TOKEN_BY_TOKEN")


@dataclass
class Score:
    """What one contestant found, question by question."""

    recall: list[float] = field(default_factory=list)
    ndcg: list[float] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    session5: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    write_seconds: float = 0.0
    turns: int = 0


# -- contestants --------------------------------------------------------------------------------------


class CachedUse(UseEmbedder):
    """The shipped embedder; a text that was embedded is not embedded again."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Any] = {}

    def embed_documents(self, texts: Any) -> Any:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        for start in range(0, len(missing), 256):
            some = missing[start : start + 256]
            self._known.update(zip(some, super().embed_documents(some), strict=True))
        return [self._known[text] for text in texts]


Search = Callable[[str], list[str]]
Build = Callable[[Haystack, Path], Search]


def simple(stack: Haystack, folder: Path) -> Search:
    store = SimpleStore(str(folder / "store.json"))
    items = [{"inputs": f"{t.speaker}: {t.text}", "key": t.id.replace("/", "|")} for t in stack.turns]
    store.record_many(items)
    return lambda q: [str(hit["id"]).replace("|", "/") for hit in store.retrieve(q, limit=K)]


def engine(embedder: Any, weights: Weights | None = None, late: Any = None) -> Build:
    def build(stack: Haystack, folder: Path) -> Search:
        memory = SqliteLongTermMemory(folder / "memory.db", embedder, late_interaction=late)
        items = [
            {"inputs": t.text, "speaker": t.speaker, "session": t.session, "time": t.time, "key": t.id}
            for t in stack.turns
        ]
        ids: dict[str, list[str]] = {}
        for turn, result in zip(stack.turns, memory.record_many(items), strict=True):
            ids.setdefault(str(result["id"]), []).append(turn.id)

        def search(question: str) -> list[str]:
            with patched(weights):
                hits = memory.retrieve(question, limit=K)
            return [turn for hit in hits for turn in ids[str(hit["id"])]][:K]

        return search

    return build


@contextmanager
def patched(weights: Weights | None) -> Iterator[None]:
    """The engine's weights for a moment, for the ablation."""
    shipped = {name: getattr(searching, name) for name in NAMES}
    try:
        if weights is not None:
            for name in NAMES:
                setattr(searching, name, weights)
        yield
    finally:
        for name, kept in shipped.items():
            setattr(searching, name, kept)


NOTHING = Weights(own=0, context=0, vector=0, before=0, after=0, reach=1, date=0, speaker=0, session=0)
ABLATED: dict[str, dict[str, float]] = {
    "- neighbours": {"before": 0.0, "after": 0.0},
    "- session": {"session": 0.0},
    "- date": {"date": 0.0},
    "- speaker": {"speaker": 0.0},
    "- message before": {"own": SEMANTIC.own + SEMANTIC.context, "context": 0.0},
    "- word by word": {"late": 0.0},
    "- embedder": {"vector": 0.0},
}


def contestants(ablation: bool, only: str | None) -> dict[str, Build]:
    embedder = CachedUse()
    shown = {
        "SimpleStore": simple,
        "BM25 alone": engine(None, replace(NOTHING, own=1)),
        "embedder alone": engine(embedder, replace(NOTHING, vector=1)),
        "words alone": engine(None),
        "default": engine(embedder),
    }
    if ColbertEmbedder.installed():
        shown["default + late arm"] = engine(embedder, late=ColbertEmbedder())
    else:
        print("the late arm is left out: pip install 'jianmu[late]'", file=sys.stderr)
    if ablation:
        for name, change in ABLATED.items():
            shown[name] = engine(embedder, replace(WORD_BY_WORD, **change))
        shown["words - neighbours"] = engine(None, replace(LEXICAL, before=0.0, after=0.0))
        shown["words - session"] = engine(None, replace(LEXICAL, session=0.0))
    return {name: build for name, build in shown.items() if not only or only in name}


# -- measures -----------------------------------------------------------------------------------------


def judge(stacks: list[Haystack], build: Build, advance: Callable[[], None]) -> Score:
    score = Score()
    for stack in stacks:
        turns = {turn.id: turn for turn in stack.turns}
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            search = build(stack, Path(folder))
            score.write_seconds += time.perf_counter() - start
            score.turns += len(stack.turns)
            for asked in stack.asked:
                start = time.perf_counter()
                found = list(dict.fromkeys(search(asked.question)))
                score.seconds.append(time.perf_counter() - start)
                _add(score, asked, found, {id: turn.session for id, turn in turns.items()})
                roles = {_role(turns[id].speaker) for id in asked.evidence}
                score.roles.append(roles.pop() if len(roles) == 1 else "both")
                advance()
    return score


def _role(speaker: str) -> str:
    return {"user": "user", "assistant": "assistant", "ai": "assistant"}.get(speaker.lower(), "")


def _add(score: Score, asked: Asked, found: list[str], session_of: dict[str, str]) -> None:
    hits = [one in asked.evidence for one in found[:K]]
    score.recall.append(sum(hits) / len(asked.evidence))
    gain = sum(hit / math.log2(at + 2) for at, hit in enumerate(hits))
    score.ndcg.append(gain / sum(1 / math.log2(at + 2) for at in range(min(K, len(asked.evidence)))))
    score.first.append(next((at + 1 for at, hit in enumerate(hits) if hit), 0))
    wanted = {session_of[one] for one in asked.evidence}
    sessions = list(dict.fromkeys(session_of[one] for one in found))
    score.session5.append(float(bool(wanted & set(sessions[:5]))))
    score.kinds.append(asked.kind)


def interval(values: list[float]) -> tuple[float, float]:
    """95 % of the means of resampled questions."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(RESAMPLED))
    return means[RESAMPLED // 40] * 100, means[-RESAMPLED // 40 - 1] * 100


def row(score: Score) -> dict[str, Any]:
    low, high = interval(score.recall)
    ndcg_low, ndcg_high = interval(score.ndcg)
    return {
        "recall": statistics.fmean(score.recall) * 100,
        "recall_low": low,
        "recall_high": high,
        "ndcg": statistics.fmean(score.ndcg) * 100,
        "ndcg_low": ndcg_low,
        "ndcg_high": ndcg_high,
        **{f"hit{k}": statistics.fmean(0 < at <= k for at in score.first) * 100 for k in (1, 5, 10)},
        "mrr": statistics.fmean(1 / at if at else 0.0 for at in score.first) * 100,
        "session5": statistics.fmean(score.session5) * 100,
        "query_ms": statistics.median(score.seconds) * 1000,
        "write_ms": score.write_seconds / score.turns * 1000,
        "questions": len(score.recall),
        "kinds": grouped(score.kinds, score.recall),
        "roles": grouped(score.roles, score.recall),
    }


def grouped(names: list[str], values: list[float]) -> dict[str, tuple[float, int]]:
    groups: dict[str, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        groups.setdefault(name, []).append(value)
    return {name: (statistics.fmean(some) * 100, len(some)) for name, some in sorted(groups.items()) if name}


# -- output -------------------------------------------------------------------------------------------

COLUMNS = (
    ("hit1", "hit@1", 7), ("hit5", "hit@5", 7), ("hit10", "hit@10", 8), ("mrr", "MRR", 7),
    ("session5", "sess@5", 8), ("query_ms", "q ms", 8), ("write_ms", "w ms", 8),
)  # fmt: skip


def show_head(name: str, stacks: list[Haystack]) -> None:
    questions, turns = sum(len(stack.asked) for stack in stacks), sum(len(stack.turns) for stack in stacks)
    print(f"\n{name}: {questions} questions, {turns} turns, {len(stacks)} memories")
    print(f"{'':<22}{'R@10 (95 %)':>20}{'nDCG@10 (95 %)':>20}" + "".join(f"{h:>{w}}" for _, h, w in COLUMNS))


def show(name: str, found: dict[str, Any]) -> None:
    spans = [
        f"{found[key]:.1f} ({found[key + '_low']:.1f}-{found[key + '_high']:.1f})"
        for key in ("recall", "ndcg")
    ]
    cells = "".join(f"{found[key]:>{width}.1f}" for key, _, width in COLUMNS)
    print(f"{name:<22}{spans[0]:>20}{spans[1]:>20}{cells}", flush=True)
    for title, groups in (("by kind", found["kinds"]), ("by whose message", found["roles"])):
        if len(groups) > 1:
            print(
                f"   {title}: " + ", ".join(f"{kind} {mean:.1f} ({n})" for kind, (mean, n) in groups.items())
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--only", help="contestants whose name holds this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.data:
        print("skipped: give --data a LoCoMo file, a file of long_chats.py or a MemoryBank folder")
        return 0
    everyone = contestants(options.ablation, options.only)
    sets = {name: stacks for path in options.data for name, stacks in load(path).items()}
    total = sum(len(stack.asked) for stacks in sets.values() for stack in stacks) * len(everyone)
    results: dict[str, dict[str, Any]] = {}
    with Progress(console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("Asking", total=total)
        for name, stacks in sets.items():
            results[name] = {}
            if not options.json:
                show_head(name, stacks)
            for who, build in everyone.items():
                bar.update(task, description=f"{name}: {who}")
                score = judge(stacks, build, lambda: bar.advance(task))
                results[name][who] = row(score)
                if not options.json:
                    show(who, results[name][who])
    if options.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
