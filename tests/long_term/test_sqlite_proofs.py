"""Killed writers, many processes and hostile questions, over one file."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from tests.long_term.embedders import hashed
from tests.long_term.killing import assert_promises_kept, kill_writers, start


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize(
    "kills", [5, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])]
)
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, kills: int) -> None:
    path = str(tmp_path / "memory.db")
    promised = kill_writers("sqlite", path, kills)
    assert_promises_kept("sqlite", path, promised)
    print(f"{kills} kills, {sum(promised.values())} acknowledged writes, 0 lost")


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_eight_processes_lose_no_write(tmp_path: Path, count: int) -> None:
    path = str(tmp_path / "memory.db")
    names = [f"p{number}" for number in range(8)]
    writers = [start("sqlite", path, name, count) for name in names]
    for writer in writers:
        output, _ = writer.communicate(timeout=800)
        assert writer.returncode == 0
        assert len(output.split()) == count
    assert_promises_kept("sqlite", path, dict.fromkeys(names, count))
    with SqliteLongTermMemory(path, hashed()) as memory:
        records = sum(len(memory.history(item["id"] or "", namespace=("n",))) for item in memory.list(("n",)))
        assert records == 8 * count


def hostile_query(chance: random.Random) -> str:
    pieces = [
        '"',
        "'",
        "*",
        "NEAR(",
        " AND ",
        " OR ",
        " NOT ",
        "col:",
        "-",
        "^",
        "%",
        "_",
        "\x00",
        "(",
        ")",
        "tea",
    ]
    kind = chance.random()
    if kind < 0.01:
        return chance.choice(["", " ", "\n", "tea " * 250_000, "猫" * 350_000])
    if kind < 0.4:
        return "".join(chance.choice(pieces) for _ in range(chance.randint(1, 12)))
    return "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randint(1, 40)))


@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
@pytest.mark.parametrize("semantic", [False, True])
def test_any_question_of_any_plane_is_answered(tmp_path: Path, count: int, semantic: bool) -> None:
    chance = random.Random(count)
    with SqliteLongTermMemory(tmp_path / "memory.db", hashed() if semantic else None) as memory:
        memory.record_many(
            {"inputs": f"{text} {number}"}
            for number in range(5)
            for text in ("green tea", "猫喜欢鱼", "ภาษาไทย", "naïve café")
        )
        for _ in range(count):
            hits = memory.retrieve(hostile_query(chance))
            assert all(hit["score"] is not None and 0 < hit["score"] <= 1 for hit in hits)
