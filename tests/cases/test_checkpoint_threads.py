"""T4 (19) and T5 (23): deleted threads stay deleted, and any id keeps its own data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jianmu.errors import LeaseLostError

from .checkpointers import ALL, openers

IDS = ["测试" * 60, "x" * 300, "line:U1", "CON", "a.", "a ", "Thread", "thread", "\u00e9", "e\u0301", "🙂"]


@pytest.mark.parametrize("kind", ALL)
def test_a_thread_deleted_during_a_run_is_not_brought_back_by_its_late_save(
    tmp_path: Path, kind: str
) -> None:
    open_store = openers(tmp_path)[kind]
    store = open_store()
    run = store.acquire("t")
    store.save_checkpoint("t", 1, {"messages": ["old"]})
    assert open_store().delete_thread("t") is True
    with pytest.raises(LeaseLostError):
        store.save_checkpoint("t", 2, {"messages": ["old", "late"]})
    assert store.get_checkpoint("t") is None
    assert "t" not in store.list_threads()
    run.release()
    store.save_checkpoint("t", 1, {"messages": []})
    assert store.get_checkpoint("t")["state"]["messages"] == []
    assert [info.step for info in store.list_checkpoints("t")] == [1]


@pytest.mark.parametrize("kind", ALL)
def test_deleting_t1_leaves_t10(tmp_path: Path, kind: str) -> None:
    store = openers(tmp_path)[kind]()
    for thread_id in ("t1", "t10", "t1_", "t1%"):
        store.save_checkpoint(thread_id, 1, {"id": thread_id})
    store.delete_thread("t1")
    assert store.list_threads() == ["t1%", "t10", "t1_"]
    for thread_id in ("t10", "t1_", "t1%"):
        assert store.get_checkpoint(thread_id)["state"]["id"] == thread_id


@pytest.mark.parametrize("kind", ALL)
def test_each_id_loads_its_own_value(tmp_path: Path, kind: str) -> None:
    open_store = openers(tmp_path)[kind]
    for number, thread_id in enumerate(IDS):
        open_store().save_checkpoint(thread_id, 1, {"n": number})
    store = open_store()
    assert [store.get_checkpoint(thread_id)["state"]["n"] for thread_id in IDS] == list(range(len(IDS)))
    assert store.list_threads() == sorted(IDS)


def check_names(folder: Path) -> None:
    names = [path.name for path in folder.iterdir()]
    for name in names:
        assert len(name.encode()) + len(".0123456789ab.tmp") <= 255
        assert not set(name) & set('<>:"/\\|?*')
    assert len({name.casefold() for name in names}) == len(names)


PROGRAM = """
import sys
from jianmu.memory import FileCheckpointer
ids = sys.argv[2:] and eval(sys.argv[2])
for number, thread_id in enumerate(ids):
    FileCheckpointer(sys.argv[1]).save_checkpoint(thread_id, 1, {"n": number, "id": thread_id})
for number, thread_id in enumerate(ids):
    envelope = FileCheckpointer(sys.argv[1]).get_checkpoint(thread_id)
    assert envelope["state"] == {"n": number, "id": thread_id}
assert FileCheckpointer(sys.argv[1]).list_threads() == sorted(ids)
"""


@pytest.mark.parametrize("settings", [{}, {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}])
def test_file_names_are_portable_in_any_locale(tmp_path: Path, settings: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), ascii(IDS)],
        env={**os.environ, **settings},
        check=True,
        timeout=60,
    )
    check_names(tmp_path)
