"""Files that released versions wrote are read by this one; damage to any byte never gives another state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jianmu.errors import CheckpointError, StorageError
from jianmu.memory import SqliteCheckpointer
from tests.samples.sqlite_checkpoints.make import envelope, version

SAMPLES = Path(__file__).parents[1] / "samples" / "sqlite_checkpoints"
NEWEST = SAMPLES / "format3.db"


def test_the_newest_format_has_its_sample(tmp_path: Path) -> None:
    SqliteCheckpointer(tmp_path / "c.db").close()
    newest = f"format{version(tmp_path / 'c.db')}.db"
    assert newest == NEWEST.name, "run python -m tests.samples.sqlite_checkpoints.make"


@pytest.mark.parametrize("sample", ["format1.db", "format2.db", "format3.db"])
def test_each_stored_format_is_read_and_continued(sample: str, tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    shutil.copy(SAMPLES / sample, path)
    with SqliteCheckpointer(path) as store:
        assert [store.get_checkpoint("session-42", step=step) for step in range(1, 6)] == [
            envelope(step) for step in range(1, 6)
        ]
        assert store.list_checkpoints("session-42")[0].time.timestamp() == 1_796_000_000.5
        assert store.read_journal("session-42")[0]["value"] == {"a": [1, 2.5, None]}
        store.save_checkpoint("session-42", 6, {"messages": []})
        assert store.get_checkpoint("session-42")["step"] == 6  # type: ignore[index]


@pytest.mark.parametrize("start", range(4))
def test_no_flipped_byte_of_the_file_gives_another_state_or_none(start: int, tmp_path: Path) -> None:
    whole = NEWEST.read_bytes()
    seen = {"whole": 0, "error": 0}
    for place in range(start * 31, len(whole), 124):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path = tmp_path / f"{place}.db"
        path.write_bytes(damaged)
        try:
            with SqliteCheckpointer(path, durability="flush") as store:
                found = store.get_checkpoint("session-42")
        except (CheckpointError, StorageError):
            seen["error"] += 1
        else:
            assert found == envelope(5), f"byte {place}"
            seen["whole"] += 1
        for left in tmp_path.glob(f"{place}.db*"):
            left.unlink()
    assert seen["error"] > 0
    assert seen["whole"] > 0
