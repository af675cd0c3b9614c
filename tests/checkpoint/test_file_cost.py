"""What a load costs follows the last record, not the file."""

import time
import tracemalloc
from pathlib import Path
from statistics import median

import pytest

from jianmu.memory import FileCheckpointer


def grow(home: Path, size: int, record: int = 50_000) -> FileCheckpointer:
    """Return a store whose thread's file has about `size` bytes of equal records."""
    store = FileCheckpointer(home, durability="flush")
    store.save_checkpoint("t", 1, {"text": "x" * record})
    path = home / "t.jsonl"
    line = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(size // len(line)):
            file.write(line)
    return FileCheckpointer(home, durability="flush")


def seconds(store: FileCheckpointer) -> float:
    times = []
    for _ in range(9):
        started = time.perf_counter()
        assert store.get_checkpoint("t") is not None
        times.append(time.perf_counter() - started)
    return median(times)


def test_a_file_of_200_mb_loads_like_one_of_2_mb(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small_store, large_store = grow(small, 2_000_000), grow(large, 200_000_000)
    ratio = min(seconds(large_store) / seconds(small_store) for _ in range(3))
    assert ratio < 3
    (large / "t.jsonl").unlink()


def test_the_memory_of_a_load_and_of_a_save_follows_the_record(tmp_path: Path) -> None:
    store = grow(tmp_path, 20_000_000)
    path = tmp_path / "t.jsonl"
    line = len(path.read_bytes().splitlines()[-1])
    tracemalloc.start()
    try:
        store.get_checkpoint("t")
        store.save_checkpoint("t", 2, {"text": "y" * 50_000})
        store.list_checkpoints("t", limit=1)
        store.list_threads()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * line


@pytest.mark.parametrize("text", ["x", "汉", "🙂"])
def test_a_last_record_of_12_mb_loads_in_memory_below_ten_times_its_size(tmp_path: Path, text: str) -> None:
    state = {"items": [text * 400] * (12_000_000 // len((text * 400).encode()))}
    store = FileCheckpointer(tmp_path, durability="flush")
    store.save_checkpoint("t", 1, state)
    size = (tmp_path / "t.jsonl").stat().st_size
    tracemalloc.start()
    try:
        envelope = store.get_checkpoint("t")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert envelope is not None
    assert envelope["state"] == state
    assert peak < 10 * size


def test_200_steps_of_a_constant_state_take_200_records(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path, durability="flush")
    for step in range(200):
        store.save_checkpoint("t", step, {"text": "x" * 1000}, {"0": "RUNNING"}, {"m": 1})
    data = (tmp_path / "t.jsonl").read_bytes()
    assert len(data) <= 1.5 * 200 * len(data.splitlines()[0])
