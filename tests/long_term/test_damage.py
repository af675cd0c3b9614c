"""A memory that is not what was stored any more is an error that names it, never another text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import JianmuError, MemoryCorruptError
from jianmu.memory import SqliteLongTermMemory
from tests.long_term.embedders import hashed

NOW = 1_796_000_000.0
DAMAGE = {
    "text": "UPDATE memory_item SET content = replace(content, 'oolong', 'poison')",
    "metadata": "UPDATE memory_item SET metadata = '{\"by\": \"Eve\"}' WHERE content LIKE '%oolong%'",
    "time": "UPDATE memory_item SET time = time + 1 WHERE content LIKE '%oolong%'",
    "kind": "UPDATE memory_item SET updated = x'00' WHERE content LIKE '%oolong%'",
}


def open_(path: Path) -> SqliteLongTermMemory:
    return SqliteLongTermMemory(path, hashed(16), clock=lambda: NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with open_(path) as memory:
        memory.record("prefers oolong tea", key="tea", metadata={"by": "Ann"}, time="2024-01-01")
        memory.record("prefers green curtains")
    return path


def damaged(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


READS: dict[str, Callable[[SqliteLongTermMemory], Any]] = {
    "get": lambda memory: memory.get("tea"),
    "list": lambda memory: memory.list(),
    "history": lambda memory: memory.history("tea"),
    "retrieve": lambda memory: memory.retrieve("prefers tea"),
    "reindex": lambda memory: memory.reindex(progress=False),
    "record again": lambda memory: memory.record("prefers oolong tea"),
    "record under its key": lambda memory: memory.record("prefers water", key="tea"),
    "update": lambda memory: memory.update("tea", "prefers water"),
    "update of metadata": lambda memory: memory.update("tea", metadata={"by": "Bo"}),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_memory_is_named_whoever_reads_it(path: Path, what: str, read: str) -> None:
    with open_(path) as memory:
        id = memory.list()[1]["id"]
    damaged(path, DAMAGE[what])
    with open_(path) as memory, pytest.raises(MemoryCorruptError, match=rf"{id}.*delete\(\)"):
        READS[read](memory)


def test_a_damaged_memory_can_be_deleted_and_the_others_are_found(path: Path) -> None:
    damaged(path, DAMAGE["text"])
    with open_(path) as memory:
        assert memory.retrieve("green curtains", limit=1)[0]["content"] == "prefers green curtains"
        assert memory.delete("tea")
        assert [hit["content"] for hit in memory.list()] == ["prefers green curtains"]
        assert [hit["content"] for hit in memory.retrieve("prefers poison")] == ["prefers green curtains"]


def test_a_damaged_earlier_text_is_named(path: Path) -> None:
    with open_(path) as memory:
        memory.record("prefers water", key="tea")
    damaged(path, "UPDATE memory_version SET content = 'prefers poison'")
    with open_(path) as memory:
        assert memory.get("tea") is not None
        for read in (lambda: memory.history("tea"), lambda: memory.retrieve("prefers", as_of="2024-02-01")):
            with pytest.raises(MemoryCorruptError, match="an earlier text"):
                read()


def test_a_damaged_word_index_says_how_to_build_it_anew(path: Path) -> None:
    with open_(path) as memory:
        before = memory.list()
        damaged(path, "UPDATE memory_posting SET entries = x'ffffffff'")
        with pytest.raises(MemoryCorruptError, match=r"reindex\(\)"):
            memory.retrieve("prefers tea")
        assert memory.reindex(progress=False) == 2
        assert memory.list() == before
        assert len(memory.retrieve("prefers tea")) == 2


@pytest.mark.parametrize("start", range(4))
def test_no_flipped_bit_of_the_file_gives_another_text(start: int, tmp_path: Path) -> None:
    path = tmp_path / "whole.db"
    with open_(path) as memory:
        memory.record_many(
            {"inputs": f"note {n} about tea", "session": f"s{n % 3}", "metadata": {"n": n}} for n in range(60)
        )
        for n in range(5):
            memory.record(f"lives in town {n}", key="home")
    whole = path.read_bytes()
    known = told(path)
    seen = {"whole": 0, "error": 0}
    for place in range(start * 307, len(whole), 1_228):
        bits = bytearray(whole)
        bits[place] ^= 1 << (place % 8)
        copy = tmp_path / f"{place}.db"
        copy.write_bytes(bits)
        try:
            found = told(copy)
        except JianmuError:
            seen["error"] += 1
        else:
            assert found <= known, f"byte {place}"
            seen["whole"] += 1
        for left in tmp_path.glob(f"{place}.db*"):
            left.unlink()
    assert seen["error"] > 0
    assert seen["whole"] > 0


def told(path: Path) -> set[tuple[str, str]]:
    """Everything that the memories and their history say."""
    with open_(path) as memory:
        hits = [*memory.list(), *memory.retrieve("town tea", limit=20), *memory.retrieve("note 7")]
        found = {(hit["content"], str(hit["metadata"])) for hit in hits}
        return found | {(text["content"], str(text["metadata"])) for text in memory.history("home")}
