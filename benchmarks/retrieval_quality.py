"""How well the shipped configuration finds evidence, beside simpler ways; one table a data set.

    python benchmarks/retrieval_quality.py --data PATH [--data PATH ...] [--ablation] [--json]

A PATH is a LoCoMo file (JSON list of conversations) or a folder of ``*.turns.jsonl`` with
``*.questions.jsonl`` (MemoryBank). Everything goes through the public `record_many` and `retrieve`. Recall
and nDCG are at 10, in percent, nDCG against the true ideal; the interval is a 95 % bootstrap over questions.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jianmu.memory import SimpleStore, SqliteLongTermMemory
from jianmu.memory.long_term.engine import searching
from jianmu.memory.long_term.engine.ranking import LEXICAL, SEMANTIC, WORD_BY_WORD, Weights
from jianmu.retrieval import ColbertEmbedder, UseEmbedder

K = 10


@dataclass
class Turn:
    id: str
    text: str
    speaker: str
    session: str
    time: datetime


@dataclass
class Asked:
    question: str
    evidence: set[str]
    kind: str


@dataclass
class Haystack:
    turns: list[Turn]
    asked: list[Asked]


@dataclass
class Score:
    recall: list[float] = field(default_factory=list)
    ndcg: list[float] = field(default_factory=list)
    hit5: list[float] = field(default_factory=list)
    rank: list[float] = field(default_factory=list)
    session5: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    write_seconds: float = 0.0
    turns: int = 0


# -- data ---------------------------------------------------------------------------------------------


def load(path: Path) -> dict[str, list[Haystack]]:
    if path.is_dir():
        return memorybank(path)
    return {path.stem: [locomo(item) for item in json.loads(path.read_text("utf-8"))]}


def locomo(item: Any) -> Haystack:
    talk, turns, number = item["conversation"], [], 1
    while f"session_{number}" in talk:
        when = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for turn in talk[f"session_{number}"]:
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            turns.append(Turn(turn["dia_id"], turn["text"] + caption, turn["speaker"], str(number), when))
        number += 1
    known = {turn.id for turn in turns}
    kinds = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
    asked = []
    for qa in item["qa"]:
        evidence = set(_evidence(qa.get("evidence") or ())) & known
        if evidence:
            asked.append(Asked(qa["question"], evidence, kinds[qa["category"]]))
    return Haystack(turns, asked)


def _evidence(given: Sequence[str]) -> Iterator[str]:
    """Joined and misspelt ids: "D8:6; D9:17", "D:11:26", "D30:05"."""
    for part in " ".join(given).replace(";", " ").replace(",", " ").split():
        numbers = [piece for piece in part.removeprefix("D").split(":") if piece]
        if len(numbers) == 2 and all(piece.isdigit() for piece in numbers):
            yield f"D{int(numbers[0])}:{int(numbers[1])}"


def memorybank(folder: Path) -> dict[str, list[Haystack]]:
    def lines(path: Path) -> list[Any]:
        return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]

    stems = sorted(path.name.removesuffix(".turns.jsonl") for path in folder.glob("*.turns.jsonl"))
    turns = {stem: lines(folder / f"{stem}.turns.jsonl") for stem in stems}
    asked = {stem: lines(folder / f"{stem}.questions.jsonl") for stem in stems}
    sets = {stem: _users(turns[stem], asked[stem], {}) for stem in stems}
    if len(stems) == 2:  # the two languages are parallel: ask in one about the memories of the other
        for here, there in (stems, stems[::-1]):
            names = dict(zip(_names(turns[here]), _names(turns[there]), strict=True))
            translated = {row["qid"]: row["question"] for row in asked[there]}
            renamed = [
                {**row, "question": translated[qid]}
                for row in asked[here]
                if (qid := f"{names[row['user']]}/{row['qid'].split('/')[1]}") in translated
            ]
            sets[f"{there} asks {here}"] = _users(turns[here], renamed, {})
    return sets


def _names(rows: list[Any]) -> list[str]:
    return list(dict.fromkeys(row["user"] for row in rows))


def _users(turns: list[Any], asked: list[Any], _: Any) -> list[Haystack]:
    stacks = []
    for user in _names(turns):
        mine = [
            Turn(
                t["id"],
                t["text"],
                t["speaker"],
                t["date"],
                datetime.fromisoformat(t["date"]).replace(tzinfo=UTC),
            )
            for t in turns
            if t["user"] == user
        ]
        questions = [
            Asked(q["question"], set(q["evidence"]), q.get("kind", ""))
            for q in asked
            if q["user"] == user and q["evidence"]
        ]
        stacks.append(Haystack(mine, questions))
    return stacks


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


class CachedColbert(ColbertEmbedder):
    """The late arm; a text that was embedded is not embedded again."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Any] = {}

    def embed_document_tokens(self, texts: Any) -> Any:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        if missing:
            self._known.update(zip(missing, super().embed_document_tokens(missing), strict=True))
        return [self._known[text] for text in texts]


Search = Callable[[str], list[str]]


def simple(stack: Haystack, folder: Path) -> Search:
    store = SimpleStore(str(folder / "store.json"))
    items = [{"inputs": f"{t.speaker}: {t.text}", "key": t.id.replace("/", "|")} for t in stack.turns]
    store.record_many(items)
    return lambda q: [str(hit["id"]).replace("|", "/") for hit in store.retrieve(q, limit=K)]


def engine(
    embedder: Any, weights: Weights | None = None, late: Any = None
) -> Callable[[Haystack, Path], Search]:
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
                return [turn for hit in memory.retrieve(question, limit=K) for turn in ids[str(hit["id"])]][
                    :K
                ]

        return search

    return build


class patched:
    """The engine's weights for a moment, for the ablation."""

    def __init__(self, weights: Weights | None) -> None:
        self.weights = weights

    def __enter__(self) -> None:
        if self.weights is not None:
            searching.LEXICAL = searching.SEMANTIC = searching.WORD_BY_WORD = self.weights

    def __exit__(self, *_: object) -> None:
        searching.LEXICAL, searching.SEMANTIC, searching.WORD_BY_WORD = LEXICAL, SEMANTIC, WORD_BY_WORD


ALONE = replace(SEMANTIC, own=0, context=0, before=0, after=0, date=0, speaker=0, session=0, vector=1)
BM25 = replace(LEXICAL, own=1, context=0, before=0, after=0, date=0, speaker=0, session=0)


def contestants(embedder: Any, ablation: bool) -> dict[str, Callable[[Haystack, Path], Search]]:
    shown = {
        "SimpleStore": simple,
        "BM25 alone": engine(None, BM25),
        "embedder alone": engine(embedder, ALONE),
        "words (shipped)": engine(None),
        "words + USE (shipped)": engine(embedder),
        "with late arm": engine(embedder, late=CachedColbert()),
    }
    if ablation:
        for name, change in {
            "- neighbours": {"before": 0.0, "after": 0.0},
            "- session": {"session": 0.0},
            "- date": {"date": 0.0},
            "- speaker": {"speaker": 0.0},
            "- context": {"own": SEMANTIC.context, "context": 0.0},
        }.items():
            shown[name] = engine(embedder, replace(SEMANTIC, **change))
    return shown


# -- measures -----------------------------------------------------------------------------------------


def judge(stacks: list[Haystack], build: Callable[[Haystack, Path], Search]) -> Score:
    score = Score()
    for stack in stacks:
        session_of = {turn.id: turn.session for turn in stack.turns}
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            search = build(stack, Path(folder))
            score.write_seconds += time.perf_counter() - start
            score.turns += len(stack.turns)
            for asked in stack.asked:
                start = time.perf_counter()
                found = list(dict.fromkeys(search(asked.question)))
                score.seconds.append(time.perf_counter() - start)
                _add(score, asked, found, session_of)
    return score


def _add(score: Score, asked: Asked, found: list[str], session_of: dict[str, str]) -> None:
    hits = [one in asked.evidence for one in found[:K]]
    score.recall.append(sum(hits) / len(asked.evidence))
    gain = sum(hit / math.log2(at + 2) for at, hit in enumerate(hits))
    score.ndcg.append(gain / sum(1 / math.log2(at + 2) for at in range(min(K, len(asked.evidence)))))
    score.hit5.append(float(any(hits[:5])))
    score.rank.append(next((1 / (at + 1) for at, hit in enumerate(hits) if hit), 0.0))
    wanted = {session_of[one] for one in asked.evidence}
    sessions = list(dict.fromkeys(session_of[one] for one in found))
    score.session5.append(float(bool(wanted & set(sessions[:5]))))
    score.kinds.append(asked.kind)


def interval(values: list[float]) -> float:
    rng = random.Random(0)
    means = sorted(statistics.mean(rng.choices(values, k=len(values))) for _ in range(300))
    return (means[291] - means[8]) / 2 * 100


def row(score: Score) -> dict[str, float]:
    return {
        "recall": statistics.mean(score.recall) * 100,
        "interval": interval(score.recall),
        "ndcg": statistics.mean(score.ndcg) * 100,
        "hit5": statistics.mean(score.hit5) * 100,
        "mrr": statistics.mean(score.rank) * 100,
        "session5": statistics.mean(score.session5) * 100,
        "query_ms": statistics.median(score.seconds) * 1000,
        "write_ms": score.write_seconds / score.turns * 1000,
        "questions": len(score.recall),
    }


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
        print("skipped: give --data a LoCoMo file or a MemoryBank folder")
        return 0
    embedder = CachedUse()
    results: dict[str, dict[str, dict[str, float]]] = {}
    for path in options.data:
        for name, stacks in load(path).items():
            results[name] = {}
            if not options.json:
                questions = sum(len(stack.asked) for stack in stacks)
                print(f"\n{name}: {questions} questions, {sum(len(s.turns) for s in stacks)} turns")
                heads = [("R@10", 6), ("±", 6), ("nDCG", 7), ("hit@5", 7), ("MRR", 7), ("sess@5", 8)]
                heads += [("q ms", 7), ("w ms", 7)]
                print(" " * 24 + "".join(f"{name:>{width}}" for name, width in heads))
            for who, build in contestants(embedder, options.ablation).items():
                if options.only and options.only not in who:
                    continue
                score = judge(stacks, build)
                found = results[name][who] = row(score)
                if not options.json:
                    print(
                        f"{who:<24}{found['recall']:>6.1f}{found['interval']:>6.1f}{found['ndcg']:>7.1f}"
                        f"{found['hit5']:>7.1f}{found['mrr']:>7.1f}{found['session5']:>8.1f}"
                        f"{found['query_ms']:>7.2f}{found['write_ms']:>7.2f}",
                        flush=True,
                    )
                    if who.endswith("(shipped)") and len(set(score.kinds)) > 1:
                        print("  " + by_kind(score))
    if options.json:
        print(json.dumps(results))
    return 0


def by_kind(score: Score) -> str:
    groups: dict[str, list[float]] = {}
    for kind, value in zip(score.kinds, score.recall, strict=True):
        groups.setdefault(kind, []).append(value)
    return ", ".join(
        f"{kind} {statistics.mean(v) * 100:.1f} ({len(v)})" for kind, v in sorted(groups.items())
    )


if __name__ == "__main__":
    sys.exit(main())
