"""FileCheckpointer with a cipher: the same contract, and nothing readable or exchangeable on the disk."""

import base64
import json
import zlib
from pathlib import Path

import pytest

from jianmu.errors import CheckpointCorruptError, CheckpointError, CipherError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import JournalRecord
from jianmu.memory.checkpoint.cipher import AesGcmCipher
from jianmu.testing.checkpointer_contract import Clock

from .test_file_contract import FileSuite

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "the codeword is 芝麻"


class TestSealedFileCheckpointer(FileSuite):
    flips = 60

    def make(self, home: Path) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush", cipher=AesGcmCipher(KEY))

    def make_with_clock(self, home: Path, clock: Clock) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush", cipher=AesGcmCipher(KEY), clock=clock)


def sealed(home: Path, key: bytes = KEY) -> FileCheckpointer:
    return FileCheckpointer(home, durability="flush", cipher=AesGcmCipher(key))


def plain(home: Path) -> FileCheckpointer:
    return FileCheckpointer(home, durability="flush")


def journal_record(key: str = "k") -> JournalRecord:
    return JournalRecord(run_id="r", path="0", activation=1, key=key, value=SECRET)


def test_neither_state_nor_answers_can_be_read_on_the_disk(tmp_path: Path) -> None:
    store = sealed(tmp_path)
    store.save_checkpoint("t", 1, {"text": SECRET}, {"0/secret": "RUNNING"}, {"question": SECRET})
    store.append_journal("t", journal_record())
    store.fork_thread("t", "fork")
    store.trim_journal("t", [journal_record(), journal_record("k2")])
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        for word in ("codeword", "芝麻", "secret", "question", "run_id"):
            assert word.encode() not in data, path.name
    assert store.read_journal("t") == [journal_record(), journal_record("k2")]
    assert store.get_checkpoint("fork")["state"] == {"text": SECRET}  # type: ignore[index]


def test_a_wrong_key_is_an_error(tmp_path: Path) -> None:
    sealed(tmp_path).save_checkpoint("t", 1, {"text": SECRET})
    sealed(tmp_path).append_journal("t", journal_record())
    other = sealed(tmp_path, b"another key".ljust(32))
    with pytest.raises(CipherError, match="thread 't', step 1: "):
        other.get_checkpoint("t")
    with pytest.raises(CipherError):
        other.read_journal("t")
    with pytest.raises(CipherError):
        other.fork_thread("t", "fork")
    assert other.get_checkpoint("fork") is None


def test_older_keys_still_read_and_the_newest_one_seals(tmp_path: Path) -> None:
    sealed(tmp_path).save_checkpoint("t", 1, {"n": 1})
    new = AesGcmCipher.new_key()
    both = FileCheckpointer(tmp_path, cipher=AesGcmCipher([new, KEY]))
    both.save_checkpoint("t", 2, {"n": 2})
    assert both.get_checkpoint("t", step=1)["state"] == {"n": 1}  # type: ignore[index]
    assert sealed(tmp_path, new).get_checkpoint("t")["state"] == {"n": 2}  # type: ignore[index]


def test_a_plain_record_where_a_sealed_one_belongs_is_an_error(tmp_path: Path) -> None:
    plain(tmp_path).save_checkpoint("t", 1, {"text": "planted"})
    plain(tmp_path).append_journal("t", journal_record())
    with pytest.raises(CipherError, match="plain record where a sealed one belongs"):
        sealed(tmp_path).get_checkpoint("t")
    with pytest.raises(CipherError, match="plain record"):
        sealed(tmp_path).read_journal("t")
    (tmp_path / "t.jsonl").write_text('{"step": 1, "state": {"text": "planted"}}\n', "utf-8")
    with pytest.raises(CipherError, match="plain record"):
        sealed(tmp_path).get_checkpoint("t")


def test_a_sealed_record_without_a_cipher_names_the_argument(tmp_path: Path) -> None:
    sealed(tmp_path).save_checkpoint("t", 1, {"text": SECRET})
    sealed(tmp_path).append_journal("t", journal_record())
    with pytest.raises(CipherError, match="cipher="):
        plain(tmp_path).get_checkpoint("t")
    with pytest.raises(CipherError, match="cipher="):
        plain(tmp_path).read_journal("t")


def resum(record: dict[str, object]) -> bytes:
    """Return a line that an attacker made whole again."""
    record.pop("sum")
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body))


@pytest.mark.parametrize("changed", [{"step": 9}, {"thread": "other"}])
def test_a_record_moved_to_another_step_or_thread_is_an_error(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    store = sealed(tmp_path)
    store.save_checkpoint("t", 1, {"text": SECRET})
    record = {**json.loads((tmp_path / "t.jsonl").read_bytes()), **changed}
    thread_id = str(record["thread"])
    (tmp_path / f"{thread_id}.jsonl").write_bytes(resum(record))
    with pytest.raises(CipherError):
        store.get_checkpoint(thread_id)


def test_an_answer_cannot_stand_in_for_a_checkpoint(tmp_path: Path) -> None:
    store = sealed(tmp_path)
    store.append_journal("t", journal_record())
    (tmp_path / "t.jsonl").write_bytes((tmp_path / "t.journal").read_bytes())
    with pytest.raises(CheckpointError):
        store.get_checkpoint("t")


def test_a_sealed_part_that_is_no_base64_is_damage(tmp_path: Path) -> None:
    store = sealed(tmp_path)
    store.save_checkpoint("t", 1, {})
    record = {**json.loads((tmp_path / "t.jsonl").read_bytes()), "sealed": "not base64!"}
    (tmp_path / "t.jsonl").write_bytes(resum(record))
    with pytest.raises(CheckpointCorruptError, match="base64"):
        store.get_checkpoint("t")


def test_the_sealed_bytes_are_the_ciphers_own(tmp_path: Path) -> None:
    store = sealed(tmp_path)
    store.save_checkpoint("t", 7, {"n": 1})
    record = json.loads((tmp_path / "t.jsonl").read_bytes())
    assert list(record) == ["step", "sealed", "thread", "format", "time", "sum"]
    aad = json.dumps(["checkpoint", 1, "t", 7]).encode()
    opened = json.loads(AesGcmCipher(KEY).open(base64.b64decode(record["sealed"]), aad=aad))
    assert opened == {"step": 7, "state": {"n": 1}, "tree": None, "runtime_metadata": {}}
