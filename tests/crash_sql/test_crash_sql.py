"""A slice of `make crash-sql`, two workers in a race, and disks that are full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jianmu.memory import SqliteCheckpointer
from tests.checkpoint_sql.conftest import Backend, backend  # noqa: F401 - a fixture
from tests.crash_sql.killer import kill_while_saving

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")


@needs_fork
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_kills_at_random_moments_lose_no_acknowledged_step(backend: Backend) -> None:  # noqa: F811
    namespace: dict[str, object] = {}
    opener = backend.source.replace("store = C(", "open_store = lambda: C(")
    exec(opener, namespace)
    report = kill_while_saving(namespace["open_store"], 20, seed=7)  # type: ignore[arg-type]
    assert report.kills == 20
    assert report.acknowledged > 20
    assert report.clean, report


WORKER = """
import sys
from jianmu.errors import CheckpointExistsError, LeaseLostError, ThreadBusyError
{source}
while True:
    try:
        with store.acquire("t", ttl=60):
            newest = store.get_checkpoint("t")
            state = {{"by": []}} if newest is None else newest["state"]
            step = len(state["by"])
            if step >= {rounds}:
                break
            state["by"].append(sys.argv[1])
            store.save_checkpoint("t", step, state)
            print(step, flush=True)
    except ThreadBusyError:
        continue
"""


def test_two_workers_race_for_a_thread_and_every_step_has_one_author(backend: Backend) -> None:  # noqa: F811
    rounds = 200
    backend.open().close()
    program = WORKER.format(source=backend.source, rounds=rounds)
    workers = {
        name: subprocess.Popen([sys.executable, "-c", program, name], stdout=subprocess.PIPE, text=True)
        for name in ("a", "b")
    }
    told = {name: [int(line) for line in worker.communicate()[0].split()] for name, worker in workers.items()}
    assert [worker.returncode for worker in workers.values()] == [0, 0]
    store = backend.open()
    newest = store.get_checkpoint("t")
    assert newest is not None
    assert sorted(told["a"] + told["b"]) == list(range(rounds))
    assert newest["state"]["by"] == ["a" if step in set(told["a"]) else "b" for step in range(rounds)]


FULL = """
import resource, sys
from jianmu.errors import StorageError
from jianmu.memory import SqliteCheckpointer
store = SqliteCheckpointer(sys.argv[1])
saved = -1
store.save_checkpoint("t", 0, {"items": []})
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
items = []
try:
    for step in range(1, 10_000):
        items.append("x" * 5000)
        store.save_checkpoint("t", step, {"items": items})
        saved = step
except StorageError as error:
    print(saved, type(error.__cause__).__name__)
assert store.get_checkpoint("t")["step"] == saved
items.pop()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
items.append("room again")
store.save_checkpoint("t", saved + 1, {"items": items})
print("went on")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
def test_a_full_disk_is_an_error_and_with_room_again_the_thread_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    saved, _, rest = done.stdout.partition(" ")
    assert rest.endswith("went on\n")
    with SqliteCheckpointer(path) as store:
        steps = [info.step for info in reversed(store.list_checkpoints("t"))]
        assert steps == list(range(int(saved) + 2))
        for step in steps[:-1]:
            assert store.get_checkpoint("t", step=step)["state"]["items"] == ["x" * 5000] * step  # type: ignore[index]
        assert store.get_checkpoint("t")["state"]["items"][-1] == "room again"  # type: ignore[index]
