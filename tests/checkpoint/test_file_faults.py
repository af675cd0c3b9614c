"""A disk that refuses: the last good checkpoint stays, and the next save is fine."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import EncodeError, StorageError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import JournalRecord
from jianmu.memory.checkpoint.thread_file import Head, ThreadFile


def fail_after(real: Callable[..., Any], calls: int, error: int) -> Callable[..., Any]:
    """Return `real`, except that its call number `calls` and all later ones raise."""
    count = 0

    def call(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count > calls:
            raise OSError(error, os.strerror(error))
        return real(*args)

    return call


@pytest.fixture(params=["fsync", "flush"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FileCheckpointer]:
    store = FileCheckpointer(tmp_path, durability=request.param)
    store.save_checkpoint("t", 1, {"n": 1, "text": "x" * 10_000})
    yield store
    store.close()


def check_intact(store: FileCheckpointer, newest: int = 1) -> None:
    """The last good step is there, for us and for another, and the next save works on both."""
    for reader in (store, FileCheckpointer(store.root)):
        assert reader.get_checkpoint("t")["step"] == newest  # type: ignore[index]
    store.save_checkpoint("t", newest + 1, {"n": newest + 1})
    FileCheckpointer(store.root).save_checkpoint("t", newest + 2, {"n": newest + 2})
    steps = [info.step for info in store.list_checkpoints("t")]
    assert steps == list(range(newest + 2, 0, -1))
    assert store.get_checkpoint("t")["step"] == newest + 2  # type: ignore[index]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("calls", [0, 1])
def test_a_write_that_fails_at_once_or_half_way_leaves_the_last_good_step(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch, error: int, calls: int
) -> None:
    def short(descriptor: int, data: memoryview) -> int:
        return real(descriptor, bytes(data[:3000]))

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail_after(short, calls, error))
        with pytest.raises(StorageError, match=r"cannot save step 2 of 't'.*untouched") as raised:
            store.save_checkpoint("t", 2, {"text": "y" * 10_000})
    assert isinstance(raised.value.__cause__, OSError)
    check_intact(store)


def test_short_writes_are_finished(store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:7])))
        store.save_checkpoint("t", 2, {"text": "汉字" * 1000})
    assert store.get_checkpoint("t")["state"] == {"text": "汉字" * 1000}  # type: ignore[index]
    check_intact(store, newest=2)


def test_a_write_that_takes_nothing_is_an_error_and_no_endless_loop(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: 0)
        with pytest.raises(StorageError):
            store.save_checkpoint("t", 2, {})
    check_intact(store)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_flush_that_fails_takes_the_record_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    store = FileCheckpointer(tmp_path)
    store.save_checkpoint("t", 1, {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_after(os.fsync, 0, error))
        with pytest.raises(StorageError):
            store.save_checkpoint("t", 2, {"n": 2})
    check_intact(store)


def test_a_disk_that_takes_nothing_back_either_leaves_a_rest_that_is_passed_over(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail_after(os.ftruncate, 0, errno.EIO))
        patch.setattr(
            os, "write", fail_after(lambda descriptor, data: real(descriptor, bytes(data[:99])), 1, errno.EIO)
        )
        with pytest.raises(StorageError):
            store.save_checkpoint("t", 2, {"n": 2})
    check_intact(store)


def test_a_first_save_that_fails_leaves_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileCheckpointer(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail_after(os.write, 0, errno.ENOSPC))
        with pytest.raises(StorageError):
            store.save_checkpoint("new", 1, {})
    assert store.get_checkpoint("new") is None
    assert store.list_threads() == []
    store.save_checkpoint("new", 1, {"n": 1})
    assert store.get_checkpoint("new") is not None


@pytest.mark.parametrize("calls", [0, 1])
def test_a_prune_fork_or_trim_that_fails_changes_nothing(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    for step in (2, 3, 4):
        store.save_checkpoint("t", step, {"n": step, "text": "x" * 10_000})
    record = JournalRecord(run_id="r", path="0", activation=1, key="k", value="v")
    store.append_journal("t", record)
    real = os.write
    with monkeypatch.context() as patch:
        for attempt in (
            lambda: store.prune("t", keep_last=1),
            lambda: store.fork_thread("t", "fork"),
            lambda: store.trim_journal("t", [JournalRecord(**{**record, "key": "x" * 20_000})]),
        ):
            patch.setattr(
                os, "write", fail_after(lambda d, data: real(d, bytes(data[:7000])), calls, errno.ENOSPC)
            )
            with pytest.raises(StorageError):
                attempt()
    assert store.list_threads() == ["t"]
    assert store.read_journal("t") == [record]
    assert not list(store.root.glob("*.tmp"))
    check_intact(store, newest=4)


def test_a_journal_write_that_fails_keeps_the_answers_before(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [
        JournalRecord(run_id="r", path="0", activation=1, key=str(n), value="v" * 500) for n in (1, 2, 3)
    ]
    store.append_journal("t", records[0])
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail_after(lambda d, data: real(d, bytes(data[:99])), 2, errno.ENOSPC))
        with pytest.raises(StorageError):
            store.append_journal("t", records[1])
    assert store.read_journal("t") == records[:1]
    store.append_journal("t", records[2])
    assert store.read_journal("t") == [records[0], records[2]]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    store = FileCheckpointer(tmp_path / "file" / "store")
    with pytest.raises(StorageError, match="'t'"):
        store.save_checkpoint("t", 1, {})


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ({"a": {"b": [1, (2,)]}}, "state.a.b.1"),
        ({"a": {1: "x"}}, "state.a"),
        ({"a": {"x"}}, "state.a"),
        ({"a": b"x"}, "state.a"),
        ({"a": 10**5000}, "state.a"),
        ({"a": float}, "state.a"),
    ],
)
def test_a_value_that_json_would_alter_is_refused_by_its_place(
    store: FileCheckpointer, bad: dict[str, Any], place: str
) -> None:
    with pytest.raises(EncodeError, match=place.replace(".", r"\.")):
        store.save_checkpoint("t", 2, bad)
    check_intact(store)


NO_ROOM = """
import resource, signal, sys
from jianmu.errors import StorageError
from jianmu.memory import FileCheckpointer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = FileCheckpointer(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
step = 0
try:
    while True:
        store.save_checkpoint("t", step + 1, {"n": step + 1, "text": "x" * 777})
        step += 1
except StorageError as error:
    assert store.get_checkpoint("t")["step"] == step
    print(step)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="RLIMIT_FSIZE is POSIX")
def test_a_file_that_may_not_grow_keeps_what_was_saved(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    last = int(run.stdout)
    assert last > 50
    size = (tmp_path / "t.jsonl").stat().st_size
    assert size < 100_000
    store = FileCheckpointer(tmp_path)
    assert store.get_checkpoint("t")["state"]["n"] == last  # type: ignore[index]
    store.save_checkpoint("t", last + 1, {"n": "room again"})
    assert len(store.list_checkpoints("t")) == last + 1


def test_a_thread_rewritten_while_it_is_forked_is_an_error_and_no_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileCheckpointer(tmp_path, durability="flush")
    for step in range(1, 6):
        store.save_checkpoint("t", step, {"n": step})
    real = ThreadFile.until

    def until_and_then_pruned(self: ThreadFile, step: int | None) -> list[Head]:
        heads = real(self, step)
        FileCheckpointer(tmp_path).prune("t", keep_last=2)
        return heads

    with monkeypatch.context() as patch:
        patch.setattr(ThreadFile, "until", until_and_then_pruned)
        with pytest.raises(StorageError, match="rewritten while it was read"):
            store.fork_thread("t", "fork")
    assert store.list_threads() == ["t"]
    store.fork_thread("t", "fork")
    assert [info.step for info in store.list_checkpoints("fork")] == [5, 4]
