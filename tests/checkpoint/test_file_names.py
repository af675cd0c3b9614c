"""File names: portable, short, different, private; and nothing outside the folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import JournalRecord
from jianmu.memory.checkpoint.names import file_stem
from jianmu.testing.checkpointer_contract import HOSTILE_IDS

RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
any_id = st.text(st.characters(), min_size=1) | st.sampled_from(HOSTILE_IDS)


def check_portable(name: str) -> None:
    assert len(name.encode()) <= 255
    assert not set(name) & set('<>:"/\\|?*')
    assert name.isascii()
    assert name.isprintable()
    assert name == name.lower()
    assert not name.endswith((".", " "))
    assert name.split(".")[0] not in RESERVED


@given(any_id)
def test_every_id_has_a_portable_name(thread_id: str) -> None:
    check_portable(file_stem(thread_id) + ".jsonl")


@given(any_id, any_id)
def test_two_ids_never_share_a_name_even_after_casefold(one: str, other: str) -> None:
    assert (file_stem(one).casefold() == file_stem(other).casefold()) == (one == other)


@pytest.mark.parametrize("thread_id", ["session-42", "user_1", "a", "0", "x" * 64])
def test_a_simple_id_is_its_own_name(thread_id: str) -> None:
    assert file_stem(thread_id) == thread_id


@pytest.mark.parametrize(
    "thread_id", ["Session-42", "line:U1", "con", "com1", "a.b", "x" * 65, "-a", "a~b", "汉"]
)
def test_another_id_gets_a_digest(thread_id: str) -> None:
    stem = file_stem(thread_id)
    assert "~" in stem
    assert stem != thread_id


def test_the_digest_of_one_release_is_that_of_the_next() -> None:
    assert file_stem("Session 42/ü") == "session-42~1185fb14fbe90b5476af223e5ff7602db0d81333"


def test_every_file_in_the_folder_has_a_portable_name(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path, durability="flush")
    seen: set[str] = set()
    ids = list(dict.fromkeys(HOSTILE_IDS))
    for thread_id in ids:
        with store.acquire(thread_id):
            for step in (1, 2):
                store.save_checkpoint(thread_id, step, {})
            store.append_journal(
                thread_id, JournalRecord(run_id="r", path="0", activation=1, key="k", value=None)
            )
            seen.update(path.name for path in tmp_path.iterdir())
            store.prune(thread_id, keep_last=1)
    names = seen | {path.name for path in tmp_path.iterdir()}
    for name in names:
        check_portable(name)
        check_portable(f"{name}.tmp")  # as write_atomically names its file
    assert len({name.casefold() for name in names}) == len(names)
    assert store.list_threads() == sorted(ids)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_files_and_folders_are_private(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    previous = os.umask(0)
    try:
        store = FileCheckpointer(root)
        store.save_checkpoint("t", 1, {})
        store.save_checkpoint("t", 2, {})
        store.append_journal("t", JournalRecord(run_id="r", path="0", activation=1, key="k", value=1))
        store.trim_journal("t", [JournalRecord(run_id="r", path="0", activation=1, key="k", value=2)])
        store.prune("t", keep_last=1)
        store.fork_thread("t", "fork")
        store.acquire("t").release()
    finally:
        os.umask(previous)
    for folder in (root, root.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    files = list(root.iterdir())
    assert {path.suffix for path in files} == {".jsonl", ".journal", ".lock", ".lease"}
    for path in files:
        assert path.stat().st_mode & 0o777 == 0o600, path.name


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    root = tmp_path / "shared"
    root.mkdir(mode=0o755)
    root.chmod(0o755)
    FileCheckpointer(root).save_checkpoint("t", 1, {})
    assert root.stat().st_mode & 0o777 == 0o755


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path / "none")
    assert store.get_checkpoint("t") is None
    assert store.list_threads() == []
    assert store.list_checkpoints("t") == []
    assert store.read_journal("t") == []
    assert not (tmp_path / "none").exists()


PROGRAM = """
import sys
from jianmu.memory import FileCheckpointer
store = FileCheckpointer(sys.argv[1])
for number, thread_id in enumerate(["\\u6d4b\\u8bd5" * 60, "\\U0001f642", "\\u00e9", "e\\u0301"]):
    store.save_checkpoint(thread_id, 1, {"text": thread_id, "n": number})
    assert store.get_checkpoint(thread_id)["state"] == {"text": thread_id, "n": number}
assert len(store.list_threads()) == 4
"""


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], env=env, check=True, timeout=60)
    envelope = FileCheckpointer(tmp_path).get_checkpoint("🙂")
    assert envelope is not None
    assert envelope["state"]["text"] == "🙂"


def test_the_default_folder_is_the_one_of_the_docs() -> None:
    assert FileCheckpointer().root == Path(".outputs/jianmu/checkpoints")
