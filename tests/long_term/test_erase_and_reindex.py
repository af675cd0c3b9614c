"""Erased texts leave no bytes anywhere; a killed reindex goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import StorageError
from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from jianmu.retrieval import CallableEmbedder
from tests.long_term.embedders import hashed
from tests.long_term.killing import ROOT, assert_index_is_what_the_texts_say

SECRET = "xylophonequartz"
FILES = {"memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal"}


def traces(folder: Path, *secrets: str) -> list[str]:
    """The files that hold one of the secrets, in any of SQLite's encodings or as the stem that is indexed."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found += [
                path.name
                for secret in secrets
                if any(form in content for form in (secret.encode(), secret.encode("utf-16-le")))
            ]
    return found


def test_every_trace_is_there_before_and_none_after(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "memory.db", hashed()) as memory:
        memory.record_many({"inputs": f"filler number {n}", "namespace": ("n",)} for n in range(300))
        erased = memory.record(f"the word is {SECRET}", namespace=("n",), key="k", session="s")["id"] or ""
        memory.record(f"it was {SECRET} before", namespace=("n",), key="old", metadata={"m": SECRET + "meta"})
        memory.record("it is another now", namespace=("n",), key="old", session="s")  # supersedes
        memory.record("an answer beside it", namespace=("n",), session="s")  # its context holds the word
        memory.record("密码是芒果树下第七块石头", namespace=("n",), key="zh")
        assert {"memory.db-wal"} <= set(traces(tmp_path, SECRET))
        memory.retrieve("filler", namespace=("n",))  # a reader's connection stays open
        memory.erase(erased, namespace=("n",))
        memory.erase("old", namespace=("n",))
        memory.erase("zh", namespace=("n",))
        assert traces(tmp_path, SECRET, SECRET + "meta", "芒果", "密码") == []
        assert {path.name for path in tmp_path.iterdir()} <= FILES
        assert_index_is_what_the_texts_say(memory)
        assert len(memory.list(("n",))) == 301
    assert traces(tmp_path, SECRET) == []


def test_erasing_a_namespace_leaves_the_others(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "memory.db", hashed()) as memory:
        memory.record(f"the word is {SECRET}", namespace=("secretplace",))
        memory.record("something else", namespace=("other",))
        assert memory.erase_all(("secretplace",)) == 1
        assert traces(tmp_path, SECRET, "secretplace") == []
        assert len(memory.list(("other",))) == 1


def test_deleting_many_and_scrubbing_once_leaves_no_trace(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "memory.db", hashed()) as memory:
        for number in range(5):
            memory.record(f"the word is {SECRET} {number}", key=f"k{number}")
        assert all(memory.delete(f"k{number}") for number in range(5))
        memory.scrub()
        assert traces(tmp_path, SECRET) == []


def test_a_reader_in_the_middle_of_a_search_is_named_and_scrub_erases_when_it_is_done(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with (
        SqliteLongTermMemory(path, None, timeout=0.2) as memory,
        SqliteLongTermMemory(path, None, timeout=0.2) as other,
    ):
        erased = memory.record(f"the word is {SECRET}")["id"] or ""

        def read(_: Any) -> None:
            with pytest.raises(StorageError, match=r"scrub\(\)"):
                memory.erase(erased)

        other._database.read(lambda tables: read(tables.spaces("", deep=True)))
        assert memory.get(erased) is None
        memory.scrub()
        assert traces(tmp_path, SECRET) == []


def test_vectors_staged_for_a_reindex_go_with_their_text(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> Any:
        if any("number299" in text for text in texts):
            raise ConnectionError("stopped")
        return hashed(32).embed_documents(texts)

    with SqliteLongTermMemory(tmp_path / "memory.db", hashed()) as memory:
        first = memory.record("note about tea")["id"] or ""
        memory.record_many({"inputs": f"note number{n}"} for n in range(300))
        with pytest.raises(Exception, match="stopped"):
            memory.reindex(CallableEmbedder(embed, id="second", dimension=32), progress=False)
        staged = memory._database.read(lambda tables: tables.all("SELECT count(*) FROM memory_staged"))[0][0]
        memory.erase(first)
        left = memory._database.read(lambda tables: tables.all("SELECT count(*) FROM memory_staged"))[0][0]
        assert (staged > 0, left) == (True, staged - 1)


# -- reindex ------------------------------------------------------------------------------------------

REINDEXER = """
import sys, time
from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from jianmu.retrieval import CallableEmbedder
from tests.long_term.embedders import hashed
inner, done = hashed(32, "second"), 0
def embed(texts):
    global done
    done += len(texts)
    print(done, flush=True)
    return inner.embed_documents(texts)
with SqliteLongTermMemory(sys.argv[1], None) as memory:
    print("whole", memory.reindex(CallableEmbedder(embed, id="second", dimension=32)), flush=True)
"""


def reindexer(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", REINDEXER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_reindex_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path, count = tmp_path / "m.db", 2_000
    with SqliteLongTermMemory(path, hashed(name="first")) as memory:
        memory.record_many({"inputs": f"tea number{n}", "session": "s"} for n in range(count))
    embedded = 0
    for rounds in range(1, 20):
        process = reindexer(path)
        assert process.stdout is not None
        last = 0
        for line in process.stdout:
            if line.startswith("whole"):
                break
            last = int(line)
            if last >= 512 and rounds < 4:
                os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        embedded += last
        if process.returncode == 0:
            break
        with SqliteLongTermMemory(path, hashed(name="first")) as memory:  # the old index works all the while
            assert memory.retrieve("number1234", limit=1)[0]["content"] == "tea number1234"
    assert (process.returncode, rounds) == (0, 4)
    assert count <= embedded <= count + 3 * 128 + 3  # a killed round repeats one batch at most
    with SqliteLongTermMemory(path, hashed(32, "second")) as memory:
        assert_index_is_what_the_texts_say(memory)
        assert memory.retrieve("number1234", limit=1)[0]["content"] == "tea number1234"


def test_what_is_written_while_a_reindex_runs_is_in_the_new_index(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with (
        SqliteLongTermMemory(path, hashed(name="first")) as memory,
        SqliteLongTermMemory(path, hashed(name="first")) as other,
    ):
        other.record_many({"inputs": f"tea number{n}"} for n in range(300))
        written: list[str] = []

        def embed(texts: list[str]) -> Any:
            if len(written) < 3:
                written.append(other.record(f"late number{len(written)}")["id"] or "")
                other.delete(other.list(limit=1, offset=5)[0]["id"] or "")
            return hashed(32).embed_documents(texts)

        count = memory.reindex(CallableEmbedder(embed, id="second", dimension=32), progress=False)
        assert count == len(memory.list()) == 300
    with SqliteLongTermMemory(path, hashed(32, "second")) as memory:
        assert_index_is_what_the_texts_say(memory)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_a_terminal_sees_how_far_a_reindex_is(tmp_path: Path) -> None:
    import pexpect

    with SqliteLongTermMemory(tmp_path / "m.db", None) as memory:
        memory.record_many({"inputs": f"tea number{n}"} for n in range(600))
    shown = pexpect.run(f"{sys.executable} -c '{REINDEXER}' {tmp_path / 'm.db'}", cwd=str(ROOT))
    assert b"Reindexing memories" in shown
    assert b"100%" in shown
    assert b"whole 600" in shown
