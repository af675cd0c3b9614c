"""A disk that fails, fills up or writes half: an error, or a whole step; and the thread goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jianmu.memory import SqliteCheckpointer

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="faults are preloaded from C on Linux"
)

PROGRAM = """
import os, sys
from jianmu.errors import CheckpointError, StorageError
from jianmu.memory import SqliteCheckpointer
store = SqliteCheckpointer(sys.argv[1])
os.environ["BADIO_KIND"] = sys.argv[2]
os.putenv("BADIO_AFTER", sys.argv[3])
acknowledged, failures, step = [], 0, 0
while step < 40:
    try:
        store.save_checkpoint("t", step, {"items": ["x" * 500] * (step % 9), "n": step})
    except StorageError:
        failures += 1
        assert failures < 20
        newest = store.get_checkpoint("t")
        if newest is not None and newest["step"] == step:  # kept, though it could not be said
            step += 1
        continue
    acknowledged.append(step)
    step += 1
print(failures, *acknowledged)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "badio.so"
    source = Path(__file__).with_name("badio.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("after", [1, 7, 40])
@pytest.mark.parametrize("kind", ["eio", "full", "short", "sync"])
def test_a_failing_disk_costs_no_acknowledged_step(kind: str, after: int, shim: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), kind, str(after)],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    failures, *acknowledged = map(int, done.stdout.split())
    assert (failures > 0) == (kind != "short")  # SQLite itself writes the other half
    with SqliteCheckpointer(path) as store:
        steps = [info.step for info in reversed(store.list_checkpoints("t"))]
        assert steps == list(range(40))
        assert set(acknowledged) <= set(steps)
        for step in steps:
            state = {"items": ["x" * 500] * (step % 9), "n": step}
            assert store.get_checkpoint("t", step=step)["state"] == state  # type: ignore[index]
