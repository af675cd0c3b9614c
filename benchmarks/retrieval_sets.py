"""Reads data sets for `retrieval_quality.py`: LoCoMo, MemoryBank, and chats made by `long_chats.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence import evidence_ids

__all__ = ["Asked", "Haystack", "Turn", "load"]


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


def load(path: Path) -> dict[str, list[Haystack]]:
    """Data sets by name, from a LoCoMo or long-chats file, or a folder of MemoryBank files."""
    if path.is_dir():
        return memorybank(path)
    data = json.loads(path.read_text("utf-8"))
    return {path.stem: [locomo(item) if "conversation" in item else chat(item) for item in data]}


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
        evidence = set(evidence_ids(qa.get("evidence") or ())) & known
        if evidence:
            asked.append(Asked(qa["question"], evidence, kinds[qa["category"]]))
    return Haystack(turns, asked)


def chat(item: Any) -> Haystack:
    turns = [
        Turn(
            t["id"],
            t["text"],
            t["speaker"],
            t["session"],
            datetime.fromisoformat(t["date"]).replace(tzinfo=UTC),
        )
        for t in item["turns"]
    ]
    return Haystack(turns, [Asked(q["question"], set(q["evidence"]), q["kind"]) for q in item["questions"]])


def memorybank(folder: Path) -> dict[str, list[Haystack]]:
    def lines(path: Path) -> list[Any]:
        return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]

    stems = sorted(path.name.removesuffix(".turns.jsonl") for path in folder.glob("*.turns.jsonl"))
    turns = {stem: lines(folder / f"{stem}.turns.jsonl") for stem in stems}
    asked = {stem: lines(folder / f"{stem}.questions.jsonl") for stem in stems}
    sets = {stem: _users(turns[stem], asked[stem]) for stem in stems}
    if len(stems) == 2:  # the two languages are parallel: ask in one about the memories of the other
        for here, there in (stems, stems[::-1]):
            names = dict(zip(_names(turns[here]), _names(turns[there]), strict=True))
            translated = {row["qid"]: row["question"] for row in asked[there]}
            renamed = [
                {**row, "question": translated[qid]}
                for row in asked[here]
                if (qid := f"{names[row['user']]}/{row['qid'].split('/')[1]}") in translated
            ]
            sets[f"{there} asks {here}"] = _users(turns[here], renamed)
            sets[f"{there} asks both"] = _beside(sets[f"{there} asks {here}"], sets[there])
    return sets


def _beside(stacks: Sequence[Haystack], others: Sequence[Haystack]) -> list[Haystack]:
    """Each with the turns of three other users of `others` in the same memory; their order is kept."""
    return [
        Haystack(
            stack.turns
            + [
                replace(turn, id=f"other {turn.id}", session=f"{at + step} {turn.session}")
                for step in range(1, 4)
                for turn in others[(at + step) % len(others)].turns
            ],
            stack.asked,
        )
        for at, stack in enumerate(stacks)
    ]


def _names(rows: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(row["user"] for row in rows))


def _users(turns: Sequence[Any], asked: Sequence[Any]) -> list[Haystack]:
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
