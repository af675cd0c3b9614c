"""kill -9 while saving: nothing that was acknowledged is lost, and nothing half is read."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jianmu.memory import FileCheckpointer

SAVER = """
import sys
from jianmu.memory import FileCheckpointer
store = FileCheckpointer(sys.argv[1], durability=sys.argv[2])
lease = store.acquire("t")
newest = store.get_checkpoint("t")
step = newest["step"] if newest else 0
answered = len(store.read_journal("t"))
print("start", step, answered, flush=True)
while True:
    step += 1
    size = (step * 7919) % 60_000
    store.save_checkpoint("t", step, {"n": step, "text": "汉" * (size // 3)}, {"0": "RUNNING"})
    print("saved", step, flush=True)
    if step % 3 == 0:
        record = {"run_id": "r", "path": "0", "activation": 1, "key": str(step), "value": "v" * (size // 50)}
        store.append_journal("t", record)
        print("answered", step, flush=True)
    if step % 40 == 0:
        store.prune("t", keep_last=20)
        print("pruned", step, flush=True)
"""


def run_and_kill(home: Path, durability: str, seconds: float) -> list[list[str]]:
    """Return the acknowledgements of a process that saves until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", SAVER, str(home), durability], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(seconds)  # the moment of the kill, not a wait for something
    process.kill()
    rest = process.communicate()[0]
    assert process.returncode == -9, rest
    return [line.split() for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]


def check_after_kill(home: Path, acknowledged: list[list[str]], answered: list[int]) -> None:
    store = FileCheckpointer(home)
    newest = store.get_checkpoint("t")
    saved = [int(line[1]) for line in acknowledged if line[0] == "saved"]
    step = newest["step"] if newest else 0
    if saved:
        assert saved[-1] <= step <= saved[-1] + 1
    if newest:
        assert newest["state"] == {"n": step, "text": "汉" * ((step * 7919) % 60_000 // 3)}
    steps = [info.step for info in store.list_checkpoints("t")]
    assert steps == list(range(step, step - len(steps), -1))
    assert len(steps) >= min(step, 20)
    answers = [int(record["key"]) for record in store.read_journal("t")]
    answered += [int(line[1]) for line in acknowledged if line[0] == "answered"]
    assert set(answered) <= set(answers)
    assert answers == sorted(set(answers))
    assert all(key % 3 == 0 and key <= step for key in answers)
    with store.acquire("t"):  # the dead holder's lease is free at once
        pass


def kill_often(home: Path, durability: str, kills: int, seed: int) -> None:
    moments = random.Random(seed)
    answered: list[int] = []
    for _ in range(kills):
        check_after_kill(home, run_and_kill(home, durability, moments.uniform(0.0, 0.25)), answered)
    assert answered


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX")
@pytest.mark.parametrize("durability", ["fsync", "flush"])
def test_a_few_kills_lose_nothing_acknowledged(tmp_path: Path, durability: str) -> None:
    kill_often(tmp_path, durability, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX")
@pytest.mark.parametrize("durability", ["fsync", "flush"])
def test_fifty_kills_lose_nothing_acknowledged(tmp_path: Path, durability: str) -> None:
    kill_often(tmp_path, durability, kills=50, seed=2)
