"""One writer per thread, between processes: the operating system frees what a killed holder held."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jianmu.errors import CheckpointNotFoundError, LeaseLostError, ThreadBusyError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import JournalRecord
from jianmu.memory.checkpoint.file_lease import FileLease

HOLDER = """
import sys
from jianmu.memory import FileCheckpointer
store = FileCheckpointer(sys.argv[1])
lease = store.acquire("t")
store.save_checkpoint("t", 1, {"by": "holder"})
print("held", flush=True)
for line in sys.stdin:
    try:
        store.save_checkpoint("t", int(line), {"by": "holder"})
        print("saved", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@contextmanager
def holder(home: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def ask(process: "subprocess.Popen[str]", step: int) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{step}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_another_process_is_turned_away_at_once(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    with holder(tmp_path):
        started = time.monotonic()
        with pytest.raises(ThreadBusyError, match="'t'"):
            store.acquire("t")
        with pytest.raises(ThreadBusyError, match="'t'"):
            store.save_checkpoint("t", 2, {})
        with pytest.raises(ThreadBusyError):
            store.prune("t", keep_last=1)
        with pytest.raises(ThreadBusyError):
            store.truncate_thread("t", step=1)
        with pytest.raises(ThreadBusyError):
            store.trim_journal("t", [])
        assert time.monotonic() - started < 5
        assert store.get_checkpoint("t")["state"] == {"by": "holder"}  # type: ignore[index]
        store.fork_thread("t", "fork")
        assert store.get_checkpoint("fork") is not None


def test_a_killed_holder_frees_the_thread_at_once(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    with holder(tmp_path) as process:
        process.kill()
        process.wait()
        with store.acquire("t"):
            store.save_checkpoint("t", 2, {"by": "successor"})


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP is POSIX")
def test_a_stopped_holder_still_holds(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    with holder(tmp_path) as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(ThreadBusyError):
            store.save_checkpoint("t", 2, {})
        os.kill(process.pid, signal.SIGCONT)
        assert ask(process, 2) == "saved"
    assert store.get_checkpoint("t")["step"] == 2  # type: ignore[index]


def test_a_thread_deleted_under_its_holder_stays_deleted(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    with holder(tmp_path) as process:
        assert ask(process, 2) == "saved"
        assert store.delete_thread("t") is True
        assert ask(process, 3) == "LeaseLostError"
        assert ask(process, 4) == "LeaseLostError"
        assert store.get_checkpoint("t") is None
        assert store.list_threads() == []
    store.save_checkpoint("t", 1, {"by": "the next"})
    assert [info.step for info in store.list_checkpoints("t")] == [1]


def test_a_file_put_in_the_place_of_the_thread_ends_the_lease(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    lease = store.acquire("t")
    store.save_checkpoint("t", 1, {"n": 1})
    copy = (tmp_path / "t.jsonl").read_bytes()
    (tmp_path / "restored").write_bytes(copy)
    (tmp_path / "restored").replace(tmp_path / "t.jsonl")
    with pytest.raises(LeaseLostError):
        store.save_checkpoint("t", 2, {"n": 2})
    assert lease.lost
    assert (tmp_path / "t.jsonl").read_bytes() == copy


def test_a_lock_file_taken_away_ends_the_lease(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    lease = store.acquire("t")
    store.save_checkpoint("t", 1, {"n": 1})
    (tmp_path / "t.lease").unlink()
    with FileCheckpointer(tmp_path).acquire("t"):
        with pytest.raises(LeaseLostError):
            lease.renew()
        with pytest.raises(LeaseLostError):
            store.save_checkpoint("t", 2, {"n": 2})


def test_pruning_truncating_and_forking_keep_the_lease(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    lease = store.acquire("t")
    for step in range(1, 6):
        store.save_checkpoint("t", step, {"n": step})
    store.prune("t", keep_last=3)
    store.truncate_thread("t", step=4)
    store.save_checkpoint("t", 6, {"n": 6})
    lease.renew()
    forked = store.acquire("fork")
    store.fork_thread("t", "fork", step=4)
    store.save_checkpoint("fork", 5, {"n": 5})
    forked.renew()
    assert [info.step for info in store.list_checkpoints("t")] == [6, 4, 3]
    assert [info.step for info in store.list_checkpoints("fork")] == [5, 4, 3]


def test_closing_gives_every_lease_back(tmp_path: Path) -> None:
    with FileCheckpointer(tmp_path) as store:
        store.acquire("a")
        store.acquire("b")
    other = FileCheckpointer(tmp_path)
    other.acquire("a").release()
    other.acquire("b").release()


def test_the_lock_files_are_never_removed(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    with store.acquire("t"):
        store.save_checkpoint("t", 1, {})
    inode = (tmp_path / "t.lease").stat().st_ino
    store.delete_thread("t")
    store.acquire("t").release()
    assert (tmp_path / "t.lease").stat().st_ino == inode


RACER = """
import sys
from jianmu.errors import CheckpointExistsError
from jianmu.memory import FileCheckpointer
store = FileCheckpointer(sys.argv[1], durability="flush")
won = []
for step in range(1, 151):
    try:
        store.save_checkpoint("t", step, {"by": sys.argv[2], "step": step})
        won.append(step)
    except CheckpointExistsError:
        pass
print(*won)
"""


def test_two_processes_race_and_each_step_is_saved_by_one(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), name], stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    won = {
        name: process.communicate(timeout=60)[0].split()
        for name, process in zip("ab", processes, strict=True)
    }
    assert [process.returncode for process in processes] == [0, 0]
    store = FileCheckpointer(tmp_path)
    steps = [info.step for info in store.list_checkpoints("t")]
    assert steps == sorted(map(int, won["a"] + won["b"]), reverse=True)
    for name, saved in won.items():
        for step in saved[::10]:
            assert store.get_checkpoint("t", step=int(step))["state"]["by"] == name  # type: ignore[index]


@pytest.mark.parametrize("call", ["prune", "trim_journal", "append_journal", "save", "truncate"])
def test_a_thread_deleted_in_the_middle_of_its_holders_call_stays_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The deletion comes right after the holder's own check of its lease."""
    store, other = FileCheckpointer(tmp_path), FileCheckpointer(tmp_path)
    record = JournalRecord(run_id="r", path="0", activation=1, key="k", value="v")
    store.acquire("t")
    for step in (1, 2, 3):
        store.save_checkpoint("t", step, {"n": step})
    real = FileLease.renew
    deleted: list[bool] = []

    def renew_and_then_deleted(self: FileLease) -> None:
        real(self)
        if not deleted:
            deleted.append(other.delete_thread("t"))

    calls = {
        "prune": lambda: store.prune("t", keep_last=1),
        "trim_journal": lambda: store.trim_journal("t", [record]),
        "append_journal": lambda: store.append_journal("t", record),
        "save": lambda: store.save_checkpoint("t", 4, {}),
        "truncate": lambda: store.truncate_thread("t", step=1),
    }
    with monkeypatch.context() as patch:
        patch.setattr(FileLease, "renew", renew_and_then_deleted)
        # prune and truncate find no thread any more, and have nothing to drop
        with contextlib.suppress(LeaseLostError, CheckpointNotFoundError):
            calls[call]()
    assert deleted == [True]
    assert store.get_checkpoint("t") is None
    assert {path.suffix for path in tmp_path.iterdir()} <= {".lock", ".lease"}


def test_what_a_crash_left_of_a_rewrite_goes_with_the_thread(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    store.save_checkpoint("t", 1, {"n": 1})
    (tmp_path / "t.jsonl.tmp").write_bytes(b"half a copy")
    assert store.list_threads() == ["t"]
    store.prune("t", keep_last=1)
    store.delete_thread("t")
    assert {path.suffix for path in tmp_path.iterdir()} == {".lock", ".lease"}


WRITER = """
import sys
from jianmu.memory import FileCheckpointer
store = FileCheckpointer(sys.argv[1], durability="flush")
if sys.argv[2] == "leased":
    store.acquire("t")
for step in range(1, 301):
    store.save_checkpoint("t", step, {"n": step, "text": "x" * (step * 7919 % 200_000)})
    if step % 50 == 0:
        store.prune("t", keep_last=5)
"""


@pytest.mark.parametrize("kind", ["leased", "unleased"])
def test_reading_all_the_while_neither_disturbs_a_writer_nor_sees_half_a_save(
    tmp_path: Path, kind: str
) -> None:
    store = FileCheckpointer(tmp_path)
    events: list[object] = []
    store.subscribe(lambda event, payload: events.append(payload))
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), kind], stderr=subprocess.PIPE)
    newest = reads = 0
    while process.poll() is None:
        envelope = store.get_checkpoint("t")
        if envelope is not None:
            assert envelope["state"]["n"] == envelope["step"] >= newest
            newest, reads = envelope["step"], reads + 1
            store.list_checkpoints("t", limit=3)
    errors = process.communicate()[1].decode()
    assert process.returncode == 0, errors
    assert store.get_checkpoint("t")["step"] == 300  # type: ignore[index]
    assert reads > 10
    assert events == []
