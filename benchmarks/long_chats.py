"""Makes chats of a user and an assistant whose answers are long, out of a LoCoMo file; seeded.

    python benchmarks/long_chats.py --data locomo.json --out long-chats.json [--chats 10] [--seed 0]

Three quarters of the turns become what the user says, a quarter stands somewhere inside an answer of 2,000
to 4,000 characters (markdown, lists, code) that otherwise repeats the user's words and goes on about
something else. Questions keep their evidence; names become "I". The result is a list of
``{"turns": [{"id", "speaker", "session", "date", "text"}], "questions": [{"question", "evidence", "kind"}]}``
for ``retrieval_quality.py``; kind says whose message holds the evidence. Filler is the Python documentation
that comes with the interpreter (PSF licence).
"""

from __future__ import annotations

import argparse
import inspect
import json
import random
import re
import statistics as source_of_code
import sys
import textwrap
from datetime import datetime
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from evidence import evidence_ids

PAIRS = 143
"""User messages in one chat; as many answers follow."""
ECHOED = 0.5
"""How many answers say again what the user said, which is not where the evidence is."""
LISTED = (
    "Start small and write down what you notice",
    "Set aside a fixed time each week and protect it",
    "Compare at least three options before you decide",
    "Ask somebody who has done it before",
    "Keep the receipts and the notes in one place",
    "Check the budget again after the first month",
    "Take a break when it stops being fun",
    "Share the plan early so that others can help",
    "Review what worked and drop what did not",
    "Keep a spare day for what goes wrong",
)
OPENINGS = (
    "Great, thanks for telling me about {0}! Let's look at {1} step by step.",
    "That sounds interesting. Here is how I would think about {0} and {1}.",
    "Absolutely, I can help with {0}. Below is an overview of {1}.",
    "I understand. {0} and {1} often go together, so let's take them in turn.",
)
HEADS = ("Overview", "Key points", "Next steps", "Details", "Example", "Things to watch out for", "Summary")
COMMON = frozenset(
    {
        "about",
        "also",
        "been",
        "from",
        "going",
        "good",
        "great",
        "have",
        "just",
        "know",
        "like",
        "love",
        "more",
        "much",
        "really",
        "some",
        "thanks",
        "that",
        "their",
        "them",
        "there",
        "they",
        "think",
        "this",
        "time",
        "very",
        "well",
        "were",
        "what",
        "when",
        "will",
        "with",
        "would",
        "your",
    }
)


def make(data: list[Any], chats: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    prose = [
        p.replace("\n", " ") for text in topics.values() for p in text.split("\n\n") if 80 < len(p) < 600
    ]
    code = [
        textwrap.dedent(inspect.getsource(value))[:700]
        for _, value in inspect.getmembers(source_of_code, inspect.isfunction)
    ]
    made: list[dict[str, Any]] = []
    while len(made) < chats:
        round_ = len(made) // len(data)
        item = data[len(made) % len(data)]
        made.append(_chat(item, round_, rng, prose, code))
    return made


def _chat(item: Any, round_: int, rng: random.Random, prose: list[str], code: list[str]) -> dict[str, Any]:
    talk = item["conversation"]
    names = {talk["speaker_a"], talk["speaker_b"]}
    said, number = [], 1
    while f"session_{number}" in talk:
        when = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        said += [(turn["dia_id"], number, when, turn["text"]) for turn in talk[f"session_{number}"]]
        number += 1
    start = round_ * PAIRS * 4 // 3 % max(1, len(said) - PAIRS * 4 // 3)
    said = said[start : start + PAIRS * 4 // 3]
    inside = {id for id, *_ in said if rng.random() < 0.25}
    turns: list[dict[str, Any]] = []
    place: dict[str, str] = {}
    held: list[tuple[str, str]] = []
    for id, session, when, text in said:
        if id in inside:
            held.append((id, text))
            continue
        message = f"m{len(turns)}"
        place[id] = message
        common = {"session": str(session), "date": when.date().isoformat()}
        turns.append({"id": message, "speaker": "user", **common, "text": _no_names(text, names)})
        answer = f"m{len(turns)}"
        texts = [_no_names(text, names) for _, text in held]
        place.update({id: answer for id, _ in held})
        held = []
        long = _answer(turns[-1]["text"], texts, rng, prose, code)
        turns.append({"id": answer, "speaker": "assistant", **common, "text": long})
    roles = {turn["id"]: turn["speaker"] for turn in turns}
    questions = []
    for qa in item["qa"]:
        wanted = list(evidence_ids(qa.get("evidence") or ()))
        if wanted and all(id in place for id in wanted):
            evidence = sorted({place[id] for id in wanted})
            kinds = {roles[id] for id in evidence}
            kind = kinds.pop() if len(kinds) == 1 else "both"
            questions.append({"question": _as_i(qa["question"], names), "evidence": evidence, "kind": kind})
    return {"turns": turns, "questions": questions}


def _answer(user: str, inside: list[str], rng: random.Random, prose: list[str], code: list[str]) -> str:
    """A long answer that repeats the user's words and holds `inside` somewhere."""
    words = [w for w in re.findall(r"[A-Za-z]{4,}", user) if w.lower() not in COMMON] or [
        "your question",
        "it",
    ]
    first, second = (words * 2)[:2]
    parts = [rng.choice(OPENINGS).format(first, second)]
    if rng.random() < ECHOED:
        parts.append("So you say: " + _to_you(user))
    size = rng.randint(2_000, 4_000)
    while sum(map(len, parts)) < size:
        kind = rng.random()
        head = f"### {rng.choice(HEADS)}: {rng.choice(words).capitalize()}"
        if kind < 0.35:
            some = rng.sample(LISTED, 4)
            lines = [
                f"{n}. **{rng.choice(words).capitalize()}**: {text}." for n, text in enumerate(some, start=1)
            ]
            parts += [head, "\n".join(lines)]
        elif kind < 0.5:
            parts += [head, "```python\n" + rng.choice(code) + "\n```"]
        else:
            parts += [head, " ".join(rng.sample(prose, 2))]
    for text in inside:
        at = rng.randrange(1, len(parts))
        parts.insert(at, text if rng.random() < 0.5 else f"- {text}\n- {rng.choice(LISTED)}.")
    return "\n\n".join(parts)


def _to_you(text: str) -> str:
    return re.sub(r"\b(I'm|I am|I|my|me|we|our)\b", lambda m: _SECOND[m[1]], text)


def _no_names(text: str, names: set[str]) -> str:
    for name in names:
        text = re.sub(rf",? ?\b({name}|{name[:3]})\b", "", text)
    return text.strip() or "Okay."


def _as_i(question: str, names: set[str]) -> str:
    for name in names:
        question = re.sub(rf"\b{name}'s\b", "my", question)
        question = re.sub(rf"\b(does|did|is|was|has) {name}\b", lambda m: f"{_FIRST[m[1]]} I", question)
        question = re.sub(rf"\b{name}\b", "I", question)
    return question


_SECOND = {
    "I'm": "you're",
    "I am": "you are",
    "I": "you",
    "my": "your",
    "me": "you",
    "we": "you",
    "our": "your",
}
_FIRST = {"does": "do", "did": "did", "is": "am", "was": "was", "has": "have"}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--chats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chats = make(json.loads(options.data.read_text("utf-8")), options.chats, options.seed)
    options.out.write_text(json.dumps(chats, ensure_ascii=False), "utf-8")
    kinds = [question["kind"] for chat in chats for question in chat["questions"]]
    print(
        f"{len(chats)} chats, {len(kinds)} questions: "
        + ", ".join(f"{k} {kinds.count(k)}" for k in sorted(set(kinds)))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
