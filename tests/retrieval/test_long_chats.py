"""The chats with long answers that retrieval is measured on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def locomo() -> list[dict[str, Any]]:
    turns = [
        {
            "dia_id": f"D1:{n}",
            "speaker": ["Ann", "Bob"][n % 2],
            "text": f"Ann, I saw the famous bridge number{n}.",
        }
        for n in range(60)
    ]
    asked = [
        {"question": f"Which bridge did Ann see, {n}?", "evidence": [f"D1:{n}"], "category": 4}
        for n in range(60)
    ]
    talk = {"speaker_a": "Ann", "speaker_b": "Bob", "session_1": turns}
    return [{"conversation": {**talk, "session_1_date_time": "1:56 pm on 8 May, 2023"}, "qa": asked}]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import long_chats

    return long_chats.make


def test_evidence_stands_where_the_label_says_and_answers_are_long(made: Any) -> None:
    (chat,) = made(locomo(), 1, 0)
    texts = {turn["id"]: turn for turn in chat["turns"]}
    kinds = []
    for number, asked in enumerate(chat["questions"]):
        (message,) = asked["evidence"]
        assert f"number{number}." in texts[message]["text"]
        assert texts[message]["speaker"] == asked["kind"]
        assert "Ann" not in asked["question"]
        kinds.append(asked["kind"])
    assert 0 < kinds.count("assistant") < kinds.count("user")
    assert all(len(t["text"]) >= 2_000 for t in chat["turns"] if t["speaker"] == "assistant")


def test_the_same_seed_gives_the_same_chats(made: Any) -> None:
    assert made(locomo(), 2, 5) == made(locomo(), 2, 5)
    assert made(locomo(), 1, 5) != made(locomo(), 1, 6)


def test_the_quality_table_says_what_it_skips_and_measures_what_it_gets(tmp_path: Path) -> None:
    script = [sys.executable, str(BENCHMARKS / "retrieval_quality.py")]
    assert "skipped" in subprocess.run(script, capture_output=True, text=True, check=True).stdout
    path = tmp_path / "small.json"
    path.write_text(json.dumps(locomo()))
    asked = [*script, "--data", str(path), "--only", "words alone", "--json"]
    found = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    row = found["small"]["words alone"]
    assert row["questions"] == 60
    assert 0 <= row["recall_low"] <= row["recall"] <= row["recall_high"] <= 100
