"""SimpleStore's own promises: its file, its locks, its search."""

import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

import jianmu.memory.long_term.json_file as json_file
from jianmu.errors import MemoryInputError, StorageError
from jianmu.memory import SimpleStore
from jianmu.memory.long_term.words import Text, match_score
from jianmu.storage.atomic import temporary_of

SAMPLES = Path(__file__).parent.parent / "samples" / "simple_store"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.json"


def test_the_default_path_is_the_specified_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    SimpleStore().record("likes tea", key="k")
    assert (tmp_path / ".outputs" / "jianmu" / "store.json").is_file()


def test_namespaces_are_nested_keys(path: Path) -> None:
    SimpleStore(path).record("likes tea", key="pref1", namespace=("session", "prefs"), metadata={"a": 1})
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["session"]["prefs"]["pref1"] == {"content": "likes tea", "metadata": {"a": 1}}


def test_a_file_of_format_1_is_read(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "format1.json", tmp_path / "s.json")
    store = SimpleStore(tmp_path / "s.json")
    assert store.list(("session", "prefs")) == [
        {"id": "content", "content": "a key called content", "metadata": {}, "score": None},
        {"id": "pref1", "content": "用户喜欢 Python", "metadata": {"type": "language"}, "score": None},
    ]
    assert [item["id"] for item in store.list(("session", "prefs", "content"))] == ["below"]


def test_a_file_written_by_hand_is_read_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"u": {"k": {"content": "likes tea"}, "note": "mine"}, "n": 3}', encoding="utf-8")
    store = SimpleStore(path)
    assert store.retrieve("tea", namespace=("u",))[0]["metadata"] == {}
    store.record("likes cake", key="l", namespace=("u",))
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["n"], data["u"]["note"], data["u"]["k"]["content"]) == (3, "mine", "likes tea")
    with pytest.raises(StorageError, match="'n'"):
        store.record("x", key="k", namespace=("n",))


def test_a_newer_format_is_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"~format": 2}', encoding="utf-8")
    with pytest.raises(StorageError, match="format 2"):
        SimpleStore(path).record("x", key="k")
    assert path.read_text(encoding="utf-8") == '{"~format": 2}'


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_damaged_file_is_named_and_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    store = SimpleStore(path)
    for attempt in (
        lambda: store.record("x", key="k"),
        lambda: store.retrieve("x"),
        lambda: store.delete("k"),
    ):
        with pytest.raises(StorageError, match=r"s\.json"):
            attempt()
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_the_file_is_private(path: Path) -> None:
    SimpleStore(path).record("x", key="k")
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("key", [None, "", 3])
def test_a_record_needs_a_key(path: Path, key: Any) -> None:
    with pytest.raises(ValueError, match="key"):
        SimpleStore(path).record("x", key=key)
    assert not path.exists()


@pytest.mark.parametrize(
    "metadata", [{"a": (1, 2)}, {"a": {1: 2}}, {"a": object()}, {"a": float("nan")}, {"a": b"x"}, {1: 2}]
)
def test_metadata_that_would_change_is_refused(path: Path, metadata: Any) -> None:
    with pytest.raises(MemoryInputError, match="metadata"):
        SimpleStore(path).record("x", key="k", metadata=metadata)
    assert not path.exists()


def test_a_namespace_too_deep_for_a_file_is_refused(path: Path) -> None:
    SimpleStore(path).record("x", key="k", namespace=("n",) * 100)
    with pytest.raises(MemoryInputError, match="100 namespace parts"):
        SimpleStore(path).record("x", key="k", namespace=("n",) * 101)
    assert SimpleStore(path).retrieve("x", namespace=("n",) * 5000) == []
    assert len(SimpleStore(path).retrieve("x", deep=True)) == 1


def test_metadata_nested_without_end_is_refused(path: Path) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    circle: dict[str, Any] = {}
    circle["self"] = circle
    for metadata in ({"a": nested}, circle):
        with pytest.raises(MemoryInputError, match="metadata"):
            SimpleStore(path).record("x", key="k", metadata=metadata)


@pytest.mark.parametrize("at", ["write", "replace", "sync"])
def test_a_failed_write_changes_nothing_and_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    store = SimpleStore(path)
    store.record("likes tea", key="k")

    def no_space(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, {"write": "write", "replace": "fsync", "sync": "fsync"}[at], no_space)
        if at == "replace":
            patch.setattr(Path, "replace", no_space)
        with pytest.raises(StorageError, match="No space left"):
            store.record("likes cake", key="k")
    for reader in (store, SimpleStore(path)):
        assert [item["content"] for item in reader.list(())] == ["likes tea"]
    assert not list(path.parent.glob("*.tmp"))
    store.record("likes cake", key="k")
    assert [item["content"] for item in SimpleStore(path).list(())] == ["likes cake"]


def test_what_a_dead_writer_left_is_replaced(path: Path) -> None:
    path.parent.mkdir()
    temporary_of(path).write_text("half", encoding="utf-8")
    SimpleStore(path).record("x", key="k")
    assert {file.name for file in path.parent.iterdir()} <= {"store.json", "store.json.lock"}


def test_a_busy_file_is_an_error_after_the_timeout(path: Path) -> None:
    store = SimpleStore(path, lock_timeout=0.05)
    store.record("x", key="k")
    with (
        FileLock(path.with_name("store.json.lock")),
        pytest.raises(StorageError, match="locked by another process"),
    ):
        store.record("y", key="k")
    assert [item["content"] for item in store.list(())] == ["x"]


def test_a_change_is_seen_even_when_time_and_size_say_nothing(path: Path) -> None:
    first, second = SimpleStore(path), SimpleStore(path)
    first.record("aaa", key="k")
    assert second.get("k") is not None
    before = path.stat()
    first.record("bbb", key="k")
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    item = second.get("k")
    assert item is not None
    assert item["content"] == "bbb"


def _put_many(path: Path, worker: int, count: int) -> None:
    store = SimpleStore(path)
    for number in range(count):
        store.record(f"text {worker}.{number}", key=f"{worker}.{number}", namespace=("n",))


def test_processes_lose_no_write(path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_put_many, args=(path, worker, 40)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
        assert worker.exitcode == 0
    assert len(SimpleStore(path).list(("n",))) == 120


WRITER = """
import sys
from jianmu.memory import SimpleStore
store = SimpleStore(sys.argv[1])
start = len(store.list(("n",)))
for number in range(start, 100_000):
    store.record(f"fact {number}", key=f"k{number}", namespace=("n",))
    sys.stdout.write(f"{number}\\n"); sys.stdout.flush()
"""


def test_a_writer_that_is_killed_loses_nothing_it_acknowledged(path: Path) -> None:
    acknowledged = -1
    for moment in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, encoding="utf-8"
        ) as child:
            assert child.stdout is not None
            for _ in range(10 + moment):
                acknowledged = int(child.stdout.readline())
            time.sleep(moment * 0.0007)
            child.kill()
            rest = child.stdout.read().splitlines()
            acknowledged = int(rest[-1]) if rest else acknowledged
        kept = {item["id"] for item in SimpleStore(path, lock_timeout=5).list(("n",))}
        assert kept >= {f"k{number}" for number in range(acknowledged + 1)}


names = st.text(min_size=1, max_size=4) | st.sampled_from(
    ["content", "metadata", "~", "~content", "~~", "~format", "a"]
)
places = st.lists(names, max_size=3).map(tuple)


@given(st.lists(st.tuples(places, names, st.text(min_size=1).filter(str.strip), st.booleans()), max_size=12))
def test_it_behaves_as_a_dict_of_namespace_and_key(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[tuple[str, ...], str, str, bool]]
) -> None:
    path = tmp_path_factory.mktemp("model") / "s.json"
    store, model = SimpleStore(path), dict[tuple[tuple[str, ...], str], str]()
    for namespace, key, text, is_delete in steps:
        if is_delete:
            assert store.delete(key, namespace=namespace) == (model.pop((namespace, key), None) is not None)
        else:
            store.record(text, key=key, namespace=namespace)
            model.pop((namespace, key), None)
            model[namespace, key] = text
    again = SimpleStore(path)
    for namespace in {namespace for namespace, *_ in steps}:
        newest_first = [(key, text) for (place, key), text in model.items() if place == namespace][::-1]
        assert [(item["id"], item["content"]) for item in again.list(namespace)] == newest_first


@given(st.text(), st.text())
def test_a_score_is_between_zero_and_one(query: str, text: str) -> None:
    assert 0 <= match_score(query, Text.of(text)) <= 1


@given(st.text(min_size=1).filter(str.strip), st.text(), st.text())
def test_a_text_that_contains_the_query_is_found(query: str, before: str, after: str) -> None:
    # a combining mark next to it would make another letter of its border
    text = f"{before} {query} {after}"
    assert match_score(query, Text.of(text)) > 0.9 or not query.strip().isprintable()


@pytest.mark.parametrize(
    ("query", "text", "better_than"),
    [
        ("green tea", "green tea with milk", "tea that is green"),
        ("tea", "tea time", "teatime"),
        ("quick fox", "the quick fox", "the quick dog"),
        ("我喜欢猫", "我喜欢猫和狗", "我有一只猫"),
        ("喜欢喝茶", "他喜欢喝咖啡", "他喝水"),
    ],
)
def test_the_better_match_scores_higher(query: str, text: str, better_than: str) -> None:
    assert match_score(query, Text.of(text)) > match_score(query, Text.of(better_than))


def test_closing_and_using_again(path: Path) -> None:
    with SimpleStore(path) as store:
        store.record("x", key="k")
    assert store.get("k") is not None


def test_the_module_keeps_no_state() -> None:
    assert not [
        name for name, value in vars(json_file).items() if isinstance(value, (dict, list)) and name[0] != "_"
    ]
