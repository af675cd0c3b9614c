"""What a crash leaves at the end of a file is passed over, told, and removed by the next save."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jianmu.errors import CheckpointCorruptError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import EventSource, JournalRecord

TEXT = "汉字😀 \u2028 é"


def store_at(home: Path) -> FileCheckpointer:
    return FileCheckpointer(home, durability="flush")


def saved(home: Path, steps: int = 3) -> bytes:
    store = store_at(home)
    for step in range(1, steps + 1):
        store.save_checkpoint("t", step, {"n": step, "text": TEXT}, {"0": "RUNNING"}, {"m": TEXT})
    return (home / "t.jsonl").read_bytes()


def newest(home: Path) -> Any:
    envelope = store_at(home).get_checkpoint("t")
    return envelope and envelope["state"]["n"]


def third_record(whole: bytes) -> int:
    return whole.rindex(b"\n", 0, len(whole) - 1) + 1


def check_goes_on(home: Path, spoiled: bytes, expected: int) -> None:
    """The newest is `expected`; a save after it is read again, and all lines of the file are whole."""
    path = home / "t.jsonl"
    path.write_bytes(spoiled)
    assert newest(home) == expected
    store_at(home).save_checkpoint("t", 4, {"n": 4, "text": TEXT})
    assert newest(home) == 4
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["state"]["n"] for line in lines] == [*range(1, expected + 1), 4]


def test_a_record_cut_at_any_byte_falls_back_to_the_step_before(tmp_path: Path) -> None:
    whole = saved(tmp_path)
    for cut in range(third_record(whole), len(whole) - 1):
        check_goes_on(tmp_path, whole[:cut], 2)


def test_a_record_that_lost_only_its_newline_is_whole(tmp_path: Path) -> None:
    whole = saved(tmp_path)
    check_goes_on(tmp_path, whole[:-1], 3)


def test_a_record_cut_at_any_byte_and_filled_with_zeros_falls_back(tmp_path: Path) -> None:
    whole = saved(tmp_path)
    for cut in range(third_record(whole), len(whole) - 1):
        check_goes_on(tmp_path, whole[:cut] + b"\0" * (len(whole) - cut), 2)


@pytest.mark.parametrize("zeros", [1, 100, 4096, 200_000])
def test_zeros_after_whole_records_are_passed_over(tmp_path: Path, zeros: int) -> None:
    whole = saved(tmp_path)
    check_goes_on(tmp_path, whole + b"\0" * zeros, 3)
    check_goes_on(tmp_path, whole[:-1] + b"\0" * zeros, 3)


def test_the_first_record_of_a_thread_may_be_torn_too(tmp_path: Path) -> None:
    whole = saved(tmp_path, steps=1)
    for cut in range(len(whole) - 1):
        (tmp_path / "t.jsonl").write_bytes(whole[:cut])
        assert newest(tmp_path) is None
        assert store_at(tmp_path).list_threads() == []
    store_at(tmp_path).save_checkpoint("t", 1, {"n": 1})
    assert newest(tmp_path) == 1
    assert store_at(tmp_path).list_threads() == ["t"]


def test_an_empty_file_is_a_thread_without_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").touch()
    assert newest(tmp_path) is None
    assert store_at(tmp_path).list_threads() == []
    assert store_at(tmp_path).list_checkpoints("t") == []


@settings(max_examples=200, deadline=None)
@given(rest=st.binary(max_size=200).filter(lambda rest: b"\n" not in rest))
def test_whatever_follows_the_last_newline_never_spoils_what_is_before(
    tmp_path_factory: pytest.TempPathFactory, rest: bytes
) -> None:
    home = tmp_path_factory.mktemp("store")
    whole = saved(home)
    (home / "t.jsonl").write_bytes(whole + rest)
    assert newest(home) == 3
    store_at(home).save_checkpoint("t", 4, {"n": 4})
    assert newest(home) == 4


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000, 9_000_000])
def test_records_of_any_size_around_the_block_read_are_found(tmp_path: Path, size: int) -> None:
    store = store_at(tmp_path)
    for step, text in enumerate(["x" * size, "", "y" * size]):
        store.save_checkpoint("t", step, {"text": text})
        with (tmp_path / "t.jsonl").open("ab") as file:
            file.write(b"torn" * 10)
        assert store_at(tmp_path).get_checkpoint("t")["state"] == {"text": text}  # type: ignore[index]
    assert [info.step for info in store.list_checkpoints("t")] == [2, 1, 0]
    assert store.get_checkpoint("t", step=0)["state"] == {"text": "x" * size}  # type: ignore[index]


def test_a_torn_end_is_logged_and_told_once_it_is_met(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = saved(tmp_path)
    (tmp_path / "t.jsonl").write_bytes(whole[:-10])
    store = store_at(tmp_path)
    assert isinstance(store, EventSource)
    events: list[tuple[str, dict[str, Any]]] = []
    unsubscribe = store.subscribe(lambda kind, payload: events.append((kind, payload)))
    with caplog.at_level(logging.WARNING, "jianmu"):
        store.get_checkpoint("t")
    ((kind, payload),) = events
    assert kind == "checkpoint.damaged"
    assert (payload["thread_id"], payload["step"]) == ("t", 2)
    assert "never acknowledged" in payload["reason"]
    assert "thread 't'" in caplog.text
    assert "汉字" not in caplog.text
    unsubscribe()
    store.get_checkpoint("t")
    assert len(events) == 1


@pytest.mark.parametrize("leased", [False, True])
def test_a_save_that_meets_a_torn_end_tells_of_it_once(tmp_path: Path, leased: bool) -> None:
    whole = saved(tmp_path)
    (tmp_path / "t.jsonl").write_bytes(whole[:-10])
    store = store_at(tmp_path)
    events: list[dict[str, Any]] = []
    store.subscribe(lambda kind, payload: events.append(payload))
    if leased:
        store.acquire("t")
    for step in (3, 4):
        store.save_checkpoint("t", step, {"n": step})
        store.get_checkpoint("t")
    assert [(event["thread_id"], event["step"]) for event in events] == [("t", 2)]
    store.close()


def test_a_torn_journal_is_logged_when_it_is_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store_at(tmp_path).append_journal("t", journal_record(1))
    with (tmp_path / "t.journal").open("ab") as file:
        file.write(b'{"run_id"')
    with caplog.at_level(logging.WARNING, "jianmu"):
        store_at(tmp_path).append_journal("t", journal_record(2))
    assert "removing 9 bytes that were never acknowledged" in caplog.text
    assert store_at(tmp_path).read_journal("t") == [journal_record(1), journal_record(2)]


def test_a_listener_that_fails_does_not_stop_a_load(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = saved(tmp_path)
    (tmp_path / "t.jsonl").write_bytes(whole[:-10])
    store = store_at(tmp_path)
    heard: list[str] = []

    def broken(kind: str, payload: dict[str, Any]) -> None:
        raise RuntimeError("listener")

    store.subscribe(broken)
    store.subscribe(lambda kind, payload: heard.append(kind))
    assert store.get_checkpoint("t") is not None
    assert heard == ["checkpoint.damaged"]
    assert "a listener for checkpoint.damaged failed" in caplog.text


def test_a_save_under_way_is_no_damage(tmp_path: Path) -> None:
    whole = saved(tmp_path)
    writer = store_at(tmp_path)
    lease = writer.acquire("t")
    (tmp_path / "t.jsonl").write_bytes(whole[:-10])  # as a reader may see it in the middle of a write
    reader = store_at(tmp_path)
    events: list[str] = []
    reader.subscribe(lambda kind, payload: events.append(kind))
    assert reader.get_checkpoint("t")["step"] == 2  # type: ignore[index]
    assert events == []
    lease.release()
    assert reader.get_checkpoint("t")["step"] == 2  # type: ignore[index]
    assert events == ["checkpoint.damaged"]


def journal_record(number: int) -> JournalRecord:
    return JournalRecord(run_id="r", path="0", activation=1, key=str(number), value=TEXT)


def test_a_journal_cut_at_any_byte_keeps_the_answers_before(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for number in (1, 2, 3):
        store.append_journal("t", journal_record(number))
    path = tmp_path / "t.journal"
    whole = path.read_bytes()
    assert path.name == "t.journal"
    for cut in range(third_record(whole), len(whole)):
        for filled in (b"", b"\0" * 50):
            path.write_bytes(whole[:cut] + filled)
            kept = [journal_record(number) for number in (1, 2, 3)[: 3 if cut == len(whole) - 1 else 2]]
            assert store_at(tmp_path).read_journal("t") == kept
            store_at(tmp_path).append_journal("t", journal_record(4))
            assert store_at(tmp_path).read_journal("t") == [*kept, journal_record(4)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1] + b"x",
        lambda data: data[:-1] + b"x\n",
        lambda data: data + b"{}",
        lambda data: data + b"garbage without end" * 1000,
    ],
    ids=["newline flipped", "newline and a letter", "an empty object", "garbage"],
)
def test_other_bytes_at_the_end_are_an_error_or_leave_the_newest(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    whole = saved(tmp_path)
    (tmp_path / "t.jsonl").write_bytes(spoil(whole))
    if (tmp_path / "t.jsonl").read_bytes().endswith(b"x\n"):
        with pytest.raises(CheckpointCorruptError) as raised:
            newest(tmp_path)
        assert raised.value.previous_step == 2
    else:
        check_goes_on(tmp_path, spoil(whole), 3)
