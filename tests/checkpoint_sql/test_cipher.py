"""Encryption at rest: File and SQLite pass the contract sealed, and nothing readable is left in the files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.errors import CheckpointCorruptError, CipherError, ConfigError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.cipher import AesGcmCipher
from jianmu.memory.checkpoint.sqlite import SqliteCheckpointer
from jianmu.testing import CheckpointerContract

OLD, NEW = bytes(range(32)), bytes(range(1, 33))
SECRET = "the launch code is tangerine"


class TestSealedFileCheckpointer(CheckpointerContract):
    def make(self, home: Path) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush", cipher=AesGcmCipher(NEW))


class TestSealedSqliteCheckpointer(CheckpointerContract):
    def make(self, home: Path) -> SqliteCheckpointer:
        return SqliteCheckpointer(home / "c.db", durability="flush", cipher=AesGcmCipher(NEW))


def make(kind: str, home: Path, cipher: AesGcmCipher | None) -> Any:
    if kind == "file":
        return FileCheckpointer(home, durability="flush", cipher=cipher)
    return SqliteCheckpointer(home / "c.db", durability="flush", cipher=cipher)


def files_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


both = pytest.mark.parametrize("kind", ["file", "sqlite"])


@both
def test_no_stored_byte_tells_the_state(kind: str, tmp_path: Path) -> None:
    with make(kind, tmp_path, AesGcmCipher(NEW)) as store:
        for step in range(1, 4):
            store.save_checkpoint("t", step, {"said": [SECRET] * step}, {"0": "RUNNING"}, {"note": SECRET})
        store.append_journal("t", {"run_id": "r", "path": "0", "activation": 1, "key": "k", "value": SECRET})
        assert store.get_checkpoint("t")["state"] == {"said": [SECRET] * 3}
        assert store.read_journal("t")[0]["value"] == SECRET
    assert b"tangerine" not in files_of(tmp_path)


@both
def test_an_older_key_still_reads_and_the_newest_seals(kind: str, tmp_path: Path) -> None:
    with make(kind, tmp_path, AesGcmCipher(OLD)) as store:
        store.save_checkpoint("t", 1, {"n": 1})
    with make(kind, tmp_path, AesGcmCipher([NEW, OLD])) as store:
        assert store.get_checkpoint("t")["state"] == {"n": 1}
        store.save_checkpoint("t", 2, {"n": 2, "filler": "x" * 5000})
        store.prune("t", keep_last=1)
    with make(kind, tmp_path, AesGcmCipher(NEW)) as store:
        assert store.get_checkpoint("t")["state"]["n"] == 2


@both
@pytest.mark.parametrize("wrong", [None, AesGcmCipher(OLD)], ids=["none", "another"])
def test_without_the_right_key_there_is_an_error_and_no_state(
    kind: str, wrong: AesGcmCipher | None, tmp_path: Path
) -> None:
    with make(kind, tmp_path, AesGcmCipher(NEW)) as store:
        store.save_checkpoint("t", 1, {"n": 1})
    with make(kind, tmp_path, wrong) as store, pytest.raises(CipherError):
        store.get_checkpoint("t")


@both
def test_a_plain_record_where_a_sealed_one_belongs_is_refused(kind: str, tmp_path: Path) -> None:
    with make(kind, tmp_path, None) as store:
        store.save_checkpoint("t", 1, {"n": 1})
    with make(kind, tmp_path, AesGcmCipher(NEW)) as store, pytest.raises(CipherError):
        store.get_checkpoint("t")


def test_a_row_moved_to_another_thread_or_step_is_refused(tmp_path: Path) -> None:
    with make("sqlite", tmp_path, AesGcmCipher(NEW)) as store:
        store.save_checkpoint("a", 1, {"n": 1})
        store.save_checkpoint("b", 1, {"n": 2})
    with sqlite3.connect(tmp_path / "c.db") as database:
        database.execute(
            "UPDATE jianmu_step SET body = (SELECT body FROM jianmu_step WHERE thread = ?)", (b"a",)
        )
    database.close()
    with make("sqlite", tmp_path, AesGcmCipher(NEW)) as store:
        assert store.get_checkpoint("a")["state"] == {"n": 1}
        with pytest.raises((CipherError, CheckpointCorruptError)):
            store.get_checkpoint("b")


@given(st.binary(max_size=200), st.binary(max_size=50), st.integers(0, 10_000), st.integers(1, 255))
def test_what_was_sealed_opens_and_any_flipped_byte_does_not(
    data: bytes, aad: bytes, place: int, flip: int
) -> None:
    cipher = AesGcmCipher([NEW, OLD])
    sealed = bytearray(cipher.seal(data, aad=aad))
    assert cipher.open(bytes(sealed), aad=aad) == data
    with pytest.raises(CipherError):
        cipher.open(bytes(sealed), aad=aad + b"x")
    sealed[place % len(sealed)] ^= flip
    with pytest.raises(CipherError):
        cipher.open(bytes(sealed), aad=aad)


def test_two_seals_of_one_text_differ_and_no_repr_tells_a_key() -> None:
    cipher = AesGcmCipher(NEW)
    assert cipher.seal(b"same", aad=b"") != cipher.seal(b"same", aad=b"")
    assert repr(cipher) == "AesGcmCipher(1 keys)"


def test_keys_may_have_names_the_newest_first() -> None:
    sealed = AesGcmCipher(OLD).seal(b"text", aad=b"")
    named = AesGcmCipher({"2027": NEW, "2026": OLD})
    assert named.open(sealed, aad=b"") == b"text"
    assert AesGcmCipher(NEW).open(named.seal(b"more", aad=b""), aad=b"") == b"more"


@pytest.mark.parametrize("keys", [b"", b"short", [], [NEW, b"short"]])
def test_a_key_of_another_length_is_refused(keys: Any) -> None:
    with pytest.raises(ConfigError, match="32"):
        AesGcmCipher(keys)
