"""Namespaces: exact, whatever their names."""

from __future__ import annotations

from typing import Any

import pytest

from jianmu.errors import CapabilityError
from jianmu.testing.long_term.samples import NEIGHBOURS
from jianmu.testing.long_term.support import Support

__all__ = ["Namespaces"]


class Namespaces(Support):
    """Namespaces: exact, whatever their names."""

    def test_namespaces_are_exact(self, memory: Any) -> None:
        """No parent, no child, no neighbour; LIKE's wildcards and case mean nothing."""
        for namespace in NEIGHBOURS:
            memory.record(f"secret of {namespace[1]!r}", namespace=namespace, key="k")
        memory.record("secret of the parent", namespace=("users",), key="k")
        memory.record("secret of the child", namespace=("users", "a", "b"), key="k")
        for namespace in NEIGHBOURS:
            found = self.contents(memory.retrieve("secret", namespace=namespace, limit=50))
            assert found == [f"secret of {namespace[1]!r}"]
        assert self.contents(memory.retrieve("secret", namespace=("users",))) == ["secret of the parent"]
        assert memory.retrieve("secret", namespace=("user",)) == []

    def test_no_namespace_is_the_empty_one(self, memory: Any) -> None:
        """None and () are the same place, and no other."""
        memory.record("secret at the root", key="k")
        memory.record("secret below", namespace=("n",), key="k")
        assert self.contents(memory.retrieve("secret", namespace=())) == ["secret at the root"]
        assert self.contents(memory.retrieve("secret", namespace=None)) == ["secret at the root"]

    def test_a_key_and_a_namespace_of_one_name_can_both_exist(self, memory: Any) -> None:
        """("x",) key "y" and ("x", "y") are two things."""
        memory.record("tea one", namespace=("x",), key="y")
        memory.record("tea two", namespace=("x", "y"), key="z")
        memory.record("tea three", namespace=("x",), key="content")
        assert sorted(self.contents(memory.retrieve("tea", namespace=("x",)))) == ["tea one", "tea three"]
        assert self.contents(memory.retrieve("tea", namespace=("x", "y"))) == ["tea two"]

    @pytest.mark.parametrize("wrong", ["users", (1,), ("a", "")], ids=repr)
    def test_a_wrong_namespace_is_refused(self, memory: Any, wrong: Any) -> None:
        """A plain string would be a namespace of letters."""
        with pytest.raises((TypeError, ValueError)):
            memory.record("text", namespace=wrong, key="k")

    def test_deep_search_is_by_whole_segments(self, memory: Any) -> None:
        """deep=True finds what is below, never a neighbour whose name begins alike."""
        if not self.has(memory, "search.deep"):
            with pytest.raises(CapabilityError, match=r"search\.deep"):
                memory.retrieve("tea", namespace=("u",), deep=True)
            return
        for namespace in [("u",), ("u", "a"), ("u", "a", "b"), ("u2",), ("u_",), ("U",), ()]:
            memory.record(f"tea in {namespace!r}", namespace=namespace, key="k")
        found = self.contents(memory.retrieve("tea", namespace=("u",), deep=True, limit=50))
        assert sorted(found) == sorted(f"tea in {n!r}" for n in [("u",), ("u", "a"), ("u", "a", "b")])
