"""Killed writers, many processes and hostile questions, over one file."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from jianmu.memory.long_term.engine.segments import unpack_row
from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from jianmu.retrieval.bm25 import POSTING_SIZE
from tests.long_term.embedders import hashed

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from jianmu.memory.long_term.engine.segments import unpack_row
from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from tests.long_term.embedders import hashed
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with SqliteLongTermMemory(path, hashed()) as memory:
    for number in range(count):
        memory.record(f"fact {name} number{number}", namespace=("n",), session=name)
        print(number, flush=True)
"""


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def assert_both_legs_agree(path: Path) -> None:
    """Every item has its passages, vectors and postings, and nothing else has any."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        items = connection.execute("SELECT slot, passages FROM memory_item").fetchall()
        slots = {slot + at for slot, passages in items for at in range(passages)}
        rows = connection.execute("SELECT slot, vector FROM memory_passage").fetchall()
        assert {slot for slot, _ in rows} == slots
        assert all(vector is not None for _, vector in rows)
        posted = {
            int.from_bytes(entries[at : at + 4], "little")
            for (row,) in connection.execute("SELECT entries FROM memory_posting")
            for entries in unpack_row(row).values()
            for at in range(0, len(entries), POSTING_SIZE)
        }
        assert posted == slots
        documents = connection.execute("SELECT coalesce(sum(documents), 0) FROM memory_space").fetchone()
        assert documents == (len(slots),)
    finally:
        connection.close()


def kill_writers(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "memory.db"
    acknowledged: list[tuple[str, int]] = []
    chance = random.Random(7)
    for round_ in range(kills):
        writer = start(path, f"w{round_}", 10_000)
        assert writer.stdout is not None
        for _ in range(chance.randint(1, 12)):
            acknowledged.append((f"w{round_}", int(writer.stdout.readline())))
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [(f"w{round_}", int(line)) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
    assert_both_legs_agree(path)
    with SqliteLongTermMemory(path, hashed()) as memory:
        kept = {item["content"] for item in memory.list(("n",))}
        assert kept >= {f"fact {name} number{number}" for name, number in acknowledged}
        name, number = acknowledged[-1]
        found = memory.retrieve(f"{name} number{number}", namespace=("n",))
        assert f"fact {name} number{number}" in [hit["content"] for hit in found]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    kill_writers(tmp_path, 5)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_what_was_acknowledged_survives_500_kills(tmp_path: Path) -> None:
    kill_writers(tmp_path, 500)


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_eight_processes_lose_no_write(tmp_path: Path, count: int) -> None:
    path = tmp_path / "memory.db"
    writers = [start(path, f"p{number}", count) for number in range(8)]
    for writer in writers:
        output, _ = writer.communicate(timeout=800)
        assert writer.returncode == 0
        assert len(output.split()) == count
    assert_both_legs_agree(path)
    with SqliteLongTermMemory(path, hashed()) as memory:
        assert len(memory.list(("n",))) == 8 * count
        assert len(memory.retrieve("fact", namespace=("n",), limit=8 * count)) == 8 * count


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
