"""The format on the disk, as a stored sample of each released version and in words."""

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from jianmu.memory import FileCheckpointer

SAMPLES = Path(__file__).parent / "samples"


def test_a_line_is_the_envelope_and_then_the_keys_of_the_back_end(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path, clock=lambda: 1_764_564_000.25)
    store.save_checkpoint("t", 3, {"n": 1}, {"0": "RUNNING"}, {"m": 2})
    (line,) = (tmp_path / "t.jsonl").read_bytes().splitlines()
    assert line == (
        b'{"step":3,"state":{"n":1},"tree":{"0":"RUNNING"},"runtime_metadata":{"m":2},'
        b'"thread":"t","format":1,"time":"2025-12-01T04:40:00.250000+00:00","sum":"%08x"}'
        % zlib.crc32(line[: line.index(b',"sum"')])
    )


def test_the_keys_of_the_back_end_are_not_in_what_is_read(tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path)
    store.save_checkpoint("t", 3, {"n": 1})
    assert set(store.get_checkpoint("t") or ()) == {"step", "state", "tree", "runtime_metadata"}


@pytest.mark.parametrize("version", sorted(path.name for path in SAMPLES.iterdir()))
def test_files_of_every_released_version_are_read(tmp_path: Path, version: str) -> None:
    home = tmp_path / "store"
    shutil.copytree(SAMPLES / version, home)
    expected: dict[str, Any] = json.loads((home / "expected.json").read_text("utf-8"))
    store = FileCheckpointer(home)
    assert store.list_threads() == sorted(expected["threads"])
    for thread_id, envelopes in expected["threads"].items():
        infos = store.list_checkpoints(thread_id)
        assert [info.step for info in infos] == [envelope["step"] for envelope in reversed(envelopes)]
        assert infos[0].time.isoformat() == "2025-12-01T04:40:00+00:00"
        for envelope in envelopes:
            assert store.get_checkpoint(thread_id, step=envelope["step"]) == envelope
    assert store.read_journal("session-42") == expected["journal"]
    store.save_checkpoint("session-42", 99, {"still": "writable"})
    assert store.get_checkpoint("session-42")["step"] == 99  # type: ignore[index]
