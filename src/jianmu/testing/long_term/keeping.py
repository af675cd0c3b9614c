"""Keeping: verbatim, replaced by key, after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import JianmuError
from jianmu.testing.long_term.samples import HOSTILE_TEXTS, MAYBE_REFUSED_TEXTS
from jianmu.testing.long_term.support import FakeClock, Support

__all__ = ["Keeping"]


class Keeping(Support):
    """Keeping: verbatim, replaced by key, after a restart."""

    @pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
    def test_any_text_comes_back_verbatim(
        self, memory: Any, tmp_path: Path, clock: FakeClock, text: str
    ) -> None:
        """Also by a new process."""
        memory.record(text, namespace=("n",), key="k")
        again = self.reopen(memory, tmp_path, clock=clock)
        try:
            if self.has(again, "read.list"):
                assert self.contents(again.list(("n",))) == [text]
            else:
                assert self.kept(again, text, text, ("n",))
        finally:
            self.close(again)

    @pytest.mark.parametrize("text", MAYBE_REFUSED_TEXTS, ids=["nul", "surrogate"])
    def test_text_that_not_every_store_takes_is_kept_or_refused(self, memory: Any, text: str) -> None:
        """Verbatim, or an error of the package's own; never altered, and the rest goes on working."""
        try:
            memory.record(text, key="odd")
            kept = True
        except (JianmuError, ValueError):
            kept = False
        memory.record("plain text", key="plain")
        if self.has(memory, "read.list"):
            assert sorted(self.contents(memory.list(()))) == sorted(["plain text", *([text] if kept else [])])
        assert self.kept(memory, "plain text", "plain")

    def test_the_same_key_replaces(self, memory: Any, tmp_path: Path, clock: FakeClock) -> None:
        """One live version; the old text is not found, before and after a reopen."""
        memory.record("lives in Berlin", namespace=("u",), key="home")
        second = memory.record("moved to Lisbon", namespace=("u",), key="home")
        assert second["status"] == "updated"
        for _ in range(2):
            found = memory.retrieve("Berlin Lisbon", namespace=("u",))
            assert self.contents(found) == ["moved to Lisbon"]
            memory = self.reopen(memory, tmp_path, clock=clock)
        self.close(memory)

    def test_the_same_key_in_two_namespaces_is_two_memories(self, memory: Any) -> None:
        """A key is unique in its namespace only."""
        memory.record("tea for one", namespace=("a",), key="k")
        memory.record("tea for two", namespace=("b",), key="k")
        assert self.contents(memory.retrieve("tea", namespace=("a",))) == ["tea for one"]
        assert self.contents(memory.retrieve("tea", namespace=("b",))) == ["tea for two"]

    def test_metadata_is_copied_in_and_out(self, memory: Any) -> None:
        """A caller's later change never reaches the store."""
        metadata = {"tags": ["a"]}
        memory.record("likes tea", key="k", metadata=metadata)
        metadata["tags"].append("b")
        memory.retrieve("tea")[0]["metadata"]["tags"].append("c")
        assert memory.retrieve("tea")[0]["metadata"]["tags"] == ["a"]

    def test_everything_survives_a_reopen(self, memory: Any, tmp_path: Path, clock: FakeClock) -> None:
        """What was acknowledged is there for the next process."""
        for number in range(20):
            memory.record(f"fact number{number}", namespace=("n",), key=f"k{number}", metadata={"n": number})
        again = self.reopen(memory, tmp_path, clock=clock)
        try:
            for number in range(20):
                hit = again.retrieve(f"number{number}", namespace=("n",), limit=1)[0]
                assert (hit["content"], hit["metadata"]["n"]) == (f"fact number{number}", number)
        finally:
            self.close(again)
