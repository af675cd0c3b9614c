"""Offers: what a back end names works, and what it does not name is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import CapabilityError, MemoryInputError, MemoryNotFoundError
from jianmu.memory.long_term.capabilities import METHODS, offered
from jianmu.testing.long_term.support import FakeClock, Support

__all__ = ["Offers"]


class Offers(Support):
    """Offers: what a back end names works, and what it does not name is refused by name."""

    @pytest.mark.parametrize(
        ("capability", "argument"),
        [
            ("search.filters", {"filters": {"a": 1}}),
            ("search.time", {"since": 0}),
            ("search.explain", {"explain": True}),
        ],
    )
    def test_asking_a_search_for_what_is_missing_names_it(
        self, memory: Any, capability: str, argument: dict[str, Any]
    ) -> None:
        """Never silently ignored."""
        if self.has(memory, capability):
            memory.retrieve("tea", **argument)
            return
        with pytest.raises(CapabilityError, match=capability.replace(".", r"\.")):
            memory.retrieve("tea", **argument)

    @pytest.mark.parametrize("capability", METHODS)
    def test_a_method_is_there_if_and_only_if_it_is_named(self, memory: Any, capability: str) -> None:
        """Asking for one that is missing says its name."""
        if self.has(memory, capability):
            assert callable(offered(memory, capability))
            return
        with pytest.raises(CapabilityError, match=capability.replace(".", r"\.")):
            offered(memory, capability)

    def test_an_unknown_argument_is_a_type_error(self, memory: Any) -> None:
        """A misspelt argument is not swallowed."""
        with pytest.raises(TypeError):
            memory.retrieve("tea", filtres={"a": 1})
        with pytest.raises(TypeError):
            memory.record("tea", key="k", metdata={})

    def test_a_record_without_a_key(self, memory: Any) -> None:
        """Gets an id of its own, or is a ValueError."""
        if self.has(memory, "write.keyless"):
            first, second = memory.record("tea one"), memory.record("tea two")
            assert first["id"] != second["id"]
            assert len(memory.retrieve("tea")) == 2
            return
        for key in (None, ""):
            with pytest.raises(ValueError, match="key"):
                memory.record("tea", key=key)

    def test_the_same_text_is_one_memory(self, memory: Any, tmp_path: Path, clock: FakeClock) -> None:
        """Twice, and once more after a restart; another user's is their own."""
        self.needs(memory, "write.dedupe")
        first = memory.record("likes tea", namespace=("u",))
        second = memory.record("likes tea", namespace=("u",))
        assert second["status"] == "duplicate"
        again = self.reopen(memory, tmp_path, clock=clock)
        try:
            third = again.record("likes tea", namespace=("u",))
            assert first["id"] == second["id"] == third["id"]
            assert len(again.retrieve("likes tea", namespace=("u",), limit=10)) == 1
            assert again.record("likes tea", namespace=("v",))["status"] == "stored"
            assert len(again.retrieve("likes tea", namespace=("v",))) == 1
        finally:
            self.close(again)

    def test_a_batch_is_stored_whole_or_not_at_all(self, memory: Any) -> None:
        """Every id that is returned can be found; a bad item leaves nothing behind."""
        self.needs(memory, "write.batch")
        items = [{"inputs": f"fact number{n}", "namespace": ("n",), "key": f"k{n}"} for n in range(10)]
        results = memory.record_many(items)
        assert [result["key"] for result in results] == [f"k{n}" for n in range(10)]
        assert len(memory.retrieve("fact", namespace=("n",), limit=20)) == 10
        bad: list[dict[str, Any]] = [{"inputs": "good one", "key": "g"}, {"inputs": 3, "key": "b"}]
        with pytest.raises((TypeError, ValueError)):
            memory.record_many(bad)
        assert memory.retrieve("good", limit=20) == []
        assert memory.record_many([]) == []

    def test_what_expired_is_gone_from_every_read(self, memory: Any, clock: FakeClock) -> None:
        """Checked when read; no sweep is needed."""
        if not self.has(memory, "write.ttl"):
            with pytest.raises(CapabilityError, match=r"write\.ttl"):
                memory.record("tea", key="k", ttl=60)
            return
        kept = memory.record("tea for a minute", key="k", ttl=60)
        clock.advance(59)
        assert len(memory.retrieve("tea")) == 1
        clock.advance(2)
        assert memory.retrieve("tea") == []
        if self.has(memory, "read.get"):
            assert memory.get(kept["id"]) is None
        if self.has(memory, "read.list"):
            assert memory.list(()) == []

    def test_get_and_list(self, memory: Any) -> None:
        """One by its id, all of exactly one namespace, newest first."""
        self.needs(memory, "read.get")
        self.needs(memory, "read.list")
        ids = [
            memory.record(f"tea {n}", namespace=("n",), key=f"k{n}", metadata={"n": n})["id"]
            for n in range(3)
        ]
        memory.record("tea below", namespace=("n", "m"), key="k")
        item = memory.get(ids[1], namespace=("n",))
        assert (item["id"], item["content"], item["metadata"]["n"]) == (ids[1], "tea 1", 1)
        assert memory.get("no such id", namespace=("n",)) is None
        assert memory.get(ids[1], namespace=("other",)) is None
        assert self.contents(memory.list(("n",))) == ["tea 2", "tea 1", "tea 0"]
        assert self.contents(memory.list(("n",), limit=2)) == ["tea 2", "tea 1"]

    def test_history_keeps_what_a_key_said_before(self, memory: Any) -> None:
        """Oldest first, and the newest is the live one."""
        self.needs(memory, "read.history")
        memory.record("lives in Berlin", key="home")
        result = memory.record("moved to Lisbon", key="home")
        assert [entry["content"] for entry in memory.history(result["id"])] == [
            "lives in Berlin",
            "moved to Lisbon",
        ]

    def test_update_replaces_the_text(self, memory: Any) -> None:
        """By id; the old words find nothing."""
        self.needs(memory, "update")
        result = memory.record("lives in Berlin", key="home")
        memory.update(result["id"], "moved to Lisbon")
        assert self.contents(memory.retrieve("Lisbon")) == ["moved to Lisbon"]
        assert self.contents(memory.retrieve("Berlin")) in ([], ["moved to Lisbon"])

    def test_what_is_deleted_is_not_found(self, memory: Any, tmp_path: Path, clock: FakeClock) -> None:
        """True once, then False; only in its namespace; also for the next process."""
        self.needs(memory, "delete")
        gone = memory.record("tea gone", namespace=("n",), key="gone")
        memory.record("tea stays", namespace=("n",), key="stays")
        memory.record("tea below", namespace=("n", "gone"), key="below")
        assert memory.delete(gone["id"], namespace=("other",)) is False
        assert memory.delete("no such id", namespace=("n",)) is False
        assert memory.delete(gone["id"], namespace=("n",)) is True
        assert memory.delete(gone["id"], namespace=("n",)) is False
        again = self.reopen(memory, tmp_path, clock=clock)
        try:
            assert self.contents(again.retrieve("tea", namespace=("n",))) == ["tea stays"]
            assert self.contents(again.retrieve("tea", namespace=("n", "gone"))) == ["tea below"]
            assert again.record("tea anew", namespace=("n",), key="gone")["status"] == "stored"
        finally:
            self.close(again)

    def test_delete_all_clears_one_namespace(self, memory: Any) -> None:
        """Exactly that one; it says how many; a namespace must be named."""
        self.needs(memory, "delete_all")
        for namespace in [("n",), ("n", "m"), ("n2",)]:
            for number in range(3):
                memory.record(f"tea {number}", namespace=namespace, key=f"k{number}")
        assert memory.delete_all(("n",)) == 3
        assert memory.retrieve("tea", namespace=("n",)) == []
        assert len(memory.retrieve("tea", namespace=("n", "m"))) == 3
        assert len(memory.retrieve("tea", namespace=("n2",))) == 3
        with pytest.raises(TypeError):
            memory.delete_all()

    def test_erase_leaves_no_trace_in_the_files(self, memory: Any, tmp_path: Path) -> None:
        """The bytes are looked for."""
        self.needs(memory, "erase")
        result = memory.record("xylophonequartz is the password", namespace=("n",), key="k")
        memory.record("something else", namespace=("n",), key="l")
        for wrong in (None, ("other",)):
            with pytest.raises(MemoryNotFoundError, match="nothing was erased"):
                memory.erase(result["id"], namespace=wrong)
        assert memory.get(result["id"], namespace=("n",)) is not None
        for nothing in (None, 3):
            with pytest.raises(MemoryInputError, match="erase_all"):
                memory.erase(nothing, namespace=("n",))
        memory.erase(result["id"], namespace=("n",))
        assert len(memory.retrieve("something else", namespace=("n",))) == 1
        assert memory.retrieve("xylophonequartz", namespace=("n",)) == []
        for path in tmp_path.rglob("*"):
            if path.is_file():
                assert b"xylophonequartz" not in path.read_bytes(), path.name

    def test_erase_all_empties_one_namespace_and_no_other(self, memory: Any) -> None:
        """The whole of a namespace has a name of its own, so that no missing id can stand for it."""
        self.needs(memory, "erase")
        for namespace in [("n",), ("n", "m"), ("n2",)]:
            memory.record("tea", namespace=namespace, key="k")
        assert memory.erase_all(("n",)) == 1
        assert memory.retrieve("tea", namespace=("n",)) == []
        assert len(memory.retrieve("tea", namespace=("n", "m"))) == 1
        assert len(memory.retrieve("tea", namespace=("n2",))) == 1
        with pytest.raises(TypeError):
            memory.erase_all()
