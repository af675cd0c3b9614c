"""A record that was acknowledged and fails its checksum is an error with a way out, never another state."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jianmu.errors import CheckpointCorruptError, CheckpointFormatError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import JournalRecord


def store_at(home: Path) -> FileCheckpointer:
    return FileCheckpointer(home, durability="flush")


def saved(home: Path, steps: int = 4) -> list[bytes]:
    store = store_at(home)
    for step in range(1, steps + 1):
        store.save_checkpoint("t", step, {"n": step, "word": "original"})
    return (home / "t.jsonl").read_bytes().splitlines(keepends=True)


def spoil(home: Path, *steps: int) -> None:
    lines = (home / "t.jsonl").read_bytes().splitlines(keepends=True)
    for step in steps:
        lines[step - 1] = lines[step - 1].replace(b"original", b"0riginal")
    (home / "t.jsonl").write_bytes(b"".join(lines))


def test_the_error_names_thread_and_step_and_the_step_before(tmp_path: Path) -> None:
    saved(tmp_path)
    spoil(tmp_path, 4)
    with pytest.raises(CheckpointCorruptError) as raised:
        store_at(tmp_path).get_checkpoint("t")
    error = raised.value
    assert (error.thread_id, error.step, error.previous_step) == ("t", 4, 3)
    assert "thread 't': step 4" in str(error)
    assert "get_checkpoint(thread_id, step=3)" in str(error)


def test_the_step_before_is_the_newest_whole_one(tmp_path: Path) -> None:
    saved(tmp_path)
    spoil(tmp_path, 2, 3, 4)
    with pytest.raises(CheckpointCorruptError) as raised:
        store_at(tmp_path).get_checkpoint("t")
    assert raised.value.previous_step == 1
    spoil(tmp_path, 1)
    with pytest.raises(CheckpointCorruptError, match="no whole step before") as raised:
        store_at(tmp_path).get_checkpoint("t")
    assert raised.value.previous_step is None


def test_the_way_out_of_the_message_works(tmp_path: Path) -> None:
    saved(tmp_path)
    spoil(tmp_path, 4)
    store = store_at(tmp_path)
    assert store.get_checkpoint("t", step=3)["state"]["n"] == 3  # type: ignore[index]
    assert store.truncate_thread("t", step=3) == 1
    assert store.get_checkpoint("t")["step"] == 3  # type: ignore[index]
    store.save_checkpoint("t", 4, {"n": "new"})
    assert store.get_checkpoint("t")["state"] == {"n": "new"}  # type: ignore[index]


def test_nothing_is_saved_on_top_of_damage(tmp_path: Path) -> None:
    saved(tmp_path)
    spoil(tmp_path, 4)
    before = (tmp_path / "t.jsonl").read_bytes()
    with pytest.raises(CheckpointCorruptError, match="step 4"):
        store_at(tmp_path).save_checkpoint("t", 5, {})
    assert (tmp_path / "t.jsonl").read_bytes() == before


def test_damage_in_the_past_does_not_stop_the_present(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path)
    spoil(tmp_path, 2)
    store = store_at(tmp_path)
    assert store.get_checkpoint("t")["step"] == 4  # type: ignore[index]
    store.save_checkpoint("t", 5, {"n": 5})
    for step in (1, 3, 4, 5):
        assert store.get_checkpoint("t", step=step) is not None
    with pytest.raises(CheckpointCorruptError) as raised:
        store.get_checkpoint("t", step=2)
    assert raised.value.previous_step == 1
    with caplog.at_level(logging.WARNING, "jianmu"):
        assert [info.step for info in store.list_checkpoints("t")] == [5, 4, 3, 1]
    assert "fails its checksum" in caplog.text


def test_a_fork_leaves_damage_behind_and_a_fork_at_it_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    spoil(tmp_path, 2)
    store = store_at(tmp_path)
    store.fork_thread("t", "fork", step=3)
    assert [info.step for info in store.list_checkpoints("fork")] == [3, 1]
    with pytest.raises(CheckpointCorruptError, match="step 2"):
        store.fork_thread("t", "other", step=2)
    with pytest.raises(CheckpointCorruptError, match="step 2"):
        store.truncate_thread("t", step=2)
    assert store.get_checkpoint("other") is None
    spoil(tmp_path, 4)
    with pytest.raises(CheckpointCorruptError, match="step 4"):
        store.fork_thread("t", "other")


def test_pruning_never_leaves_only_damage(tmp_path: Path) -> None:
    saved(tmp_path)
    spoil(tmp_path, 4)
    store = store_at(tmp_path)
    assert store.prune("t", keep_last=1) == 2
    assert store.get_checkpoint("t", step=3) is not None


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_change_to_the_bytes_of_a_file_is_taken_for_a_state_that_was_not_saved(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    home = tmp_path_factory.mktemp("store")
    whole = b"".join(saved(home, steps=3))
    kept = [store_at(home).get_checkpoint("t", step=step) for step in (1, 2, 3)]
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    (home / "t.jsonl").write_bytes(whole[:start] + data.draw(st.binary(max_size=40)) + whole[end:])
    store = store_at(home)
    for step in (None, 1, 2, 3):
        try:
            envelope = store.get_checkpoint("t", step=step)
        except CheckpointCorruptError:
            continue
        except CheckpointFormatError:
            continue
        assert envelope is None or envelope in kept
        assert step is None or envelope is None or envelope["step"] == step


def test_a_damaged_answer_in_the_journal_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for key in ("a", "b"):
        store.append_journal(
            "t", JournalRecord(run_id="r", path="0", activation=1, key=key, value="original")
        )
    path = tmp_path / "t.journal"
    path.write_bytes(path.read_bytes().replace(b"original", b"0riginal", 1))
    with pytest.raises(CheckpointCorruptError, match=r"trim_journal\(thread_id, \[\]\)") as raised:
        store.read_journal("t")
    assert raised.value.thread_id == "t"
    store.trim_journal("t", [])
    assert store.read_journal("t") == []


def test_a_file_of_another_thread_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "t.jsonl").rename(tmp_path / "other.jsonl")
    with pytest.raises(CheckpointCorruptError, match="another thread"):
        store_at(tmp_path).get_checkpoint("other")


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    import zlib

    (line, *_) = saved(tmp_path)
    newer = line.rstrip(b"\n").replace(b'"format":1', b'"format":2')
    body = newer[: newer.index(b',"sum"')]
    (tmp_path / "t.jsonl").write_bytes(b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body)))
    with pytest.raises(CheckpointFormatError, match="format 2, and this version reads up to 1; upgrade"):
        store_at(tmp_path).get_checkpoint("t")


# Lines that another program or a person wrote


def write_lines(home: Path, *records: Any, end: str = "\n") -> None:
    text = "\n".join(json.dumps(record) for record in records) + end
    (home / "t.jsonl").write_text(text, "utf-8")


@pytest.mark.parametrize("end", ["\n", "", "\n\n", "\r\n"])
def test_a_valid_line_without_a_checksum_is_taken(tmp_path: Path, end: str) -> None:
    first = {"step": 1, "state": {"n": 1}}
    second = {"state": {"n": 2}, "more": [1], "tree": None, "step": 2, "runtime_metadata": {"m": 1}}
    write_lines(tmp_path, first, second, end=end)
    store = store_at(tmp_path)
    assert store.get_checkpoint("t") == second
    assert store.get_checkpoint("t", step=1) == {**first, "tree": None, "runtime_metadata": {}}
    assert store.list_threads() == ["t"]
    assert [info.step for info in store.list_checkpoints("t")] == [2, 1]
    store.save_checkpoint("t", 3, {"n": 3})
    store.fork_thread("t", "fork")
    assert store.get_checkpoint("fork", step=2) == second
    assert [info.step for info in store.list_checkpoints("fork")] == [3, 2, 1]


@pytest.mark.parametrize(
    "record", [{"payload": {"step": 1, "state": {}}}, {"step": 1}, {}, [], 1, "text", None]
)
def test_a_line_of_another_layout_is_refused_without_an_error(tmp_path: Path, record: Any) -> None:
    write_lines(tmp_path, record)
    assert store_at(tmp_path).get_checkpoint("t") is None


def test_a_line_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b'{"step": 1, "state": {}}\nnot json\n')
    with pytest.raises(CheckpointCorruptError) as raised:
        store_at(tmp_path).get_checkpoint("t")
    assert raised.value.previous_step == 1


def test_unknown_keys_of_a_later_version_stay(tmp_path: Path) -> None:
    import zlib

    (line, *_) = saved(tmp_path, steps=1)
    body = line[: line.index(b',"thread"')] + b',"from_later":{"a":1}' + line[line.index(b',"thread"') :]
    body = body[: body.index(b',"sum"')]
    (tmp_path / "t.jsonl").write_bytes(b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body)))
    envelope = store_at(tmp_path).get_checkpoint("t")
    assert envelope is not None
    assert envelope["from_later"] == {"a": 1}
    assert set(envelope) == {"step", "state", "tree", "runtime_metadata", "from_later"}
