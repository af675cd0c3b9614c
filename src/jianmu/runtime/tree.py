"""The index over a tree: stable ids, a fingerprint, and what changed in a tick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.common import Status

from jianmu.errors import UnsupportedNodeError
from jianmu.runtime import kinds
from jianmu.runtime.leaf import AsyncNode

__all__ = ["MAX_DEPTH", "TreeIndex"]

MAX_DEPTH = 200
"""py_trees ticks by nested generators: cost grows with the square of the depth, and 1,000 levels overflow."""


class TreeIndex:
    """All nodes of a tree in pre-order, each with its index path ("0", "0/2", "0/2/1").

    Names may repeat and py_trees' own ids are new in every process; the path is neither.

    Args:
        root: The tree.

    Raises:
        UnsupportedNodeError: A node stands in two places, or the tree is deeper than `MAX_DEPTH`.
    """

    def __init__(self, root: Behaviour) -> None:
        self.root = root
        self.nodes: list[Behaviour] = []
        self.paths: list[str] = []
        self._walk(root)
        self.path_of = {id(node): path for node, path in zip(self.nodes, self.paths, strict=True)}
        self.leaves = [node for node in self.nodes if isinstance(node, AsyncNode)]
        self.leaf_at = {self.path_of[id(leaf)]: leaf for leaf in self.leaves}
        self.deadlines = list(kinds.deadlines(self.nodes))
        self.fingerprint = [self._describe(i) for i in range(len(self.nodes))]
        self._counters = [
            (node, attribute.name)
            for node in self.nodes
            for attribute in kinds.position_attributes(node)
            if attribute.counts and not isinstance(node, AsyncNode)
        ]
        self._dumping = [node for node in self.nodes if kinds.has_dump(node)]
        self._statuses = [Status.INVALID] * len(self.nodes)
        self._before = self._statuses
        self._counts: list[Any] = []
        self.mark()

    def _walk(self, root: Behaviour) -> None:
        seen: set[int] = set()
        stack = [(root, "0", 1)]
        while stack:
            node, path, depth = stack.pop()
            if id(node) in seen:
                raise UnsupportedNodeError(
                    f"node {path} ({node.name!r}) stands in the tree twice; build a node for each place"
                )
            if depth > MAX_DEPTH:
                raise UnsupportedNodeError(
                    f"the tree is deeper than {MAX_DEPTH} levels at {node.name!r}; a long sequence is one "
                    "Sequence with many children, not a chain"
                )
            seen.add(id(node))
            self.nodes.append(node)
            self.paths.append(path)
            children = [(child, f"{path}/{i}", depth + 1) for i, child in enumerate(node.children)]
            stack.extend(reversed(children))

    def _describe(self, i: int) -> str:
        node = self.nodes[i]
        kind = node.kind if isinstance(node, AsyncNode) else type(node).__qualname__
        memory = getattr(node, "memory", None)
        return f"{self.paths[i]} {kind} {node.name!r}" + ("" if memory is None else f" memory={bool(memory)}")

    def difference(self, position: Mapping[str, Any]) -> str | None:
        """Return the first difference from the tree whose position was saved, or None if it is this one."""
        saved: list[str] = position.get("fingerprint", self.fingerprint)
        for then, now in zip(saved, self.fingerprint, strict=False):
            if then != now:
                return f"saved was node {then}, now it is node {now}"
        if len(saved) > len(self.fingerprint):
            return f"saved node {saved[len(self.fingerprint)]} is gone"
        if len(saved) < len(self.fingerprint):
            return f"node {self.fingerprint[len(saved)]} was not in the saved tree"
        return None

    def check_supported(self) -> None:
        """Refuse a tree whose position could not be saved.

        Raises:
            UnsupportedNodeError: With the node and the remedy.
        """
        for node, path in zip(self.nodes, self.paths, strict=True):
            reason = kinds.refusal(node)
            if reason is not None:
                raise UnsupportedNodeError(
                    f"node {path} ({type(node).__name__} {node.name!r}) cannot be checkpointed: {reason}"
                )

    def mark(self) -> bool:
        """Remember all statuses and counters; return whether any changed since the last call."""
        statuses = [node.status for node in self.nodes]
        counts = [getattr(node, name) for node, name in self._counters]
        # A queue is changed in place, so a reference to it would always look unchanged.
        counts = [list(count) if type(count) is list else count for count in counts]
        counts.extend([node.dump() for node in self._dumping])  # type: ignore[attr-defined]
        changed = statuses != self._statuses or counts != self._counts
        self._before, self._statuses, self._counts = self._statuses, statuses, counts
        return changed

    def changes(self) -> Iterator[tuple[Behaviour, str, Status]]:
        """Yield each node whose status the last `mark` found changed, with its path and its status before."""
        for node, path, before, now in zip(self.nodes, self.paths, self._before, self._statuses, strict=True):
            if now is not before:
                yield node, path, before

    @property
    def statuses(self) -> list[Status]:
        """The statuses at the last `mark`, in pre-order."""
        return self._statuses
