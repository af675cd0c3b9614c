"""Memory files that earlier versions wrote open in this one, or are refused with what to do."""

from __future__ import annotations

import gzip
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jianmu.errors import LongTermMemoryError, StorageError
from jianmu.memory import SqliteLongTermMemory
from tests.long_term.embedders import hashed

SAMPLES = Path(__file__).parents[1] / "samples" / "sqlite_memory"
NEWEST = "format6.db.gz"
NOW = 1_796_000_000.0


def unpacked(name: str, folder: Path) -> Path:
    path = folder / "memory.db"
    path.write_bytes(gzip.decompress((SAMPLES / name).read_bytes()))
    return path


def open_(path: Path, *, later: float = 0.0) -> SqliteLongTermMemory:
    return SqliteLongTermMemory(path, hashed(16), clock=lambda: NOW + later)


def changed(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("name", ["format2.db.gz", "format4.db.gz", "format5.db.gz", NEWEST])
def test_each_stored_format_is_read_found_in_and_continued(tmp_path: Path, name: str) -> None:
    path = unpacked(name, tmp_path)
    with open_(path) as memory:
        assert [entry["content"] for entry in memory.history("home", namespace=("me",))] == [
            "lives in Paris",
            "lives in London",
        ]
        assert (
            memory.retrieve("lives in", namespace=("me",), as_of="2023-07-01")[0]["content"]
            == "lives in Paris"
        )
        allergy = memory.get("food", namespace=("me",))
        assert allergy is not None
        assert allergy["content"] == "我对花生过敏"
        assert allergy["metadata"] == {"级别": "高", "n": [1, 2.5, None]}
        assert memory.retrieve("花生", namespace=("me",))[0]["id"] == allergy["id"]
        chat = memory.retrieve("xylophone quartz", namespace=("me", "chat"), limit=1)
        assert "xylophone" in chat[0]["content"]
        assert memory.retrieve("raining", namespace=("me",), deep=True)[0]["metadata"]["speaker"] == "Ann"
        assert len(memory.list(("notes",))) == 39
        assert len(memory.retrieve("tea", namespace=("notes",), limit=100)) == 39
        assert {"gone by tomorrow"} <= {item["content"] for item in memory.list(("me",))}
        assert memory.record("note number8 about tea", namespace=("notes",))["status"] == "duplicate"
        assert memory.record("note number7 about tea", namespace=("notes",))["status"] == "stored"
        assert memory.reindex(progress=False) == 3 + 4 + 40
    with open_(path, later=86_400) as memory:
        assert "gone by tomorrow" not in {item["content"] for item in memory.list(("me",))}


def test_the_newest_format_has_its_sample(tmp_path: Path) -> None:
    SqliteLongTermMemory(tmp_path / "m.db", None).close()
    connection = sqlite3.connect(tmp_path / "m.db")
    (version,) = connection.execute("SELECT version FROM jianmu_kind").fetchone()
    connection.close()
    assert f"format{version}.db.gz" == NEWEST, "run python -m tests.samples.sqlite_memory.make"


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = unpacked(NEWEST, tmp_path)
    changed(path, "UPDATE jianmu_kind SET version = 99")
    with pytest.raises((StorageError, LongTermMemoryError), match=r"99.*upgrade jianmu"):
        open_(path)


def test_the_format_before_the_first_release_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = unpacked(NEWEST, tmp_path)
    changed(path, "DROP TABLE memory_posting")
    changed(path, "CREATE TABLE memory_posting (space INTEGER, term TEXT, first INTEGER, entries BLOB)")
    changed(path, "UPDATE jianmu_kind SET version = 1")
    with pytest.raises(LongTermMemoryError, match="record_many"):
        open_(path)


def test_words_split_by_another_rule_ask_for_a_reindex(tmp_path: Path) -> None:
    path = unpacked(NEWEST, tmp_path)
    changed(path, "UPDATE memory_setting SET value = 'words-0/none' WHERE name = 'analyzer'")
    with open_(path) as memory:
        with pytest.raises(LongTermMemoryError, match=r"words-0/none.*reindex"):
            memory.retrieve("tea", namespace=("notes",))
        assert memory.reindex(progress=False) == 3 + 4 + 39
        assert len(memory.retrieve("tea", namespace=("notes",), limit=100)) == 39


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    changed(path, "CREATE TABLE notes (id INTEGER)")
    with pytest.raises(StorageError, match="another kind"):
        SqliteLongTermMemory(path, None)
    (tmp_path / "text.db").write_text("no database at all" * 100)
    with pytest.raises(StorageError, match="no SQLite file"):
        SqliteLongTermMemory(tmp_path / "text.db", None)


def test_times_are_those_that_were_stored(tmp_path: Path) -> None:
    with open_(unpacked(NEWEST, tmp_path)) as memory:
        first, last = memory.history("home", namespace=("me",))
        assert first["valid_from"] == datetime(2023, 1, 1, tzinfo=UTC)
        assert first["valid_to"] == last["valid_from"] == datetime(2024, 6, 1, tzinfo=UTC)
