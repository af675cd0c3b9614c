"""Where a tree stands: read into plain data, written back by attributes alone.

`stop(status)` is never used as a setter: it runs `terminate`. A node restored RUNNING is not initialised
again, and every ancestor of a RUNNING node is restored RUNNING too, else py_trees would reset what is below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.common import Status
from py_trees.composites import Composite, Parallel, Selector

from jianmu.errors import NodeStateError
from jianmu.runtime import kinds
from jianmu.runtime.leaf import AsyncNode
from jianmu.runtime.tree import TreeIndex

__all__ = ["TreePosition"]


class TreePosition:
    """Reads and writes the position of one tree.

    Args:
        index: The tree.
    """

    def __init__(self, index: TreeIndex) -> None:
        self._index = index
        self._attributes = [(node, kinds.position_attributes(node)) for node in index.nodes]
        self._stateful = [
            (path, node, attributes)
            for path, (node, attributes) in zip(index.paths, self._attributes, strict=True)
            if attributes
        ]
        self._composites = [
            (path, node, {id(child): i for i, child in enumerate(node.children)})
            for path, node in zip(index.paths, index.nodes, strict=True)
            if isinstance(node, Composite)
        ]
        self._dumping = [
            (path, node) for path, node in zip(index.paths, index.nodes, strict=True) if kinds.has_dump(node)
        ]
        self._watched = [
            (path, node, len(vars(node)), frozenset(vars(node)))
            for path, node in zip(index.paths, index.nodes, strict=True)
            if not kinds.is_known(node) and not kinds.has_dump(node)
        ]
        self._pristine = {path: _dump(node) for path, node in self._dumping}
        self._names: dict[str, str] = {}
        self._seen: list[Status] = []

    def reset(self) -> None:
        """Make every node as it was before its first tick."""
        for node, attributes in self._attributes:
            node.status = Status.INVALID
            if isinstance(node, Composite):
                node.current_child = None
            if isinstance(node, AsyncNode):
                node.error = None
            for attribute in attributes:
                setattr(node, attribute.name, attribute.fresh(node))
        for path, node in self._dumping:
            _load(node, self._pristine[path])

    def statuses(self) -> dict[str, str]:
        """Return ``{node id: Status name}`` as of the index's last `mark`; costs what changed."""
        names = dict(self._names)
        current = self._index.statuses
        if len(self._seen) == len(current):
            changed = [i for i, (a, b) in enumerate(zip(current, self._seen, strict=True)) if a is not b]
        else:
            changed = list(range(len(current)))
        for i in changed:
            names[self._index.paths[i]] = current[i].name
        self._seen, self._names = current, names
        return names

    def metadata(self) -> dict[str, Any]:
        """Return what the statuses leave out.

        Raises:
            NodeStateError: A node got attributes after the start, so they would be lost.
        """
        self._check_watched()
        current_child = {
            path: place[id(node.current_child)]
            for path, node, place in self._composites
            if id(node.current_child) in place
        }
        attributes: dict[str, Any] = {}
        for path, node, described in self._stateful:
            values = {
                each.name: each.encode(getattr(node, each.name))
                for each in described
                if getattr(node, each.name) != each.fresh(node)
            }
            if values:
                attributes[path] = values
        return {
            "fingerprint": self._index.fingerprint,
            "current_child": current_child,
            "attributes": attributes,
            "data": {path: _dump(node) for path, node in self._dumping},
        }

    def _check_watched(self) -> None:
        for path, node, count, names in self._watched:
            if len(vars(node)) != count:
                new = ", ".join(sorted(set(vars(node)) - names))
                raise NodeStateError(
                    f"node {path} ({type(node).__name__} {node.name!r}) got attributes in the run that "
                    f"are not saved: {new}; keep the data in the state, or give the class dump() and "
                    "load(data)"
                )

    def restore_statuses(self, tree: Mapping[str, str]) -> None:
        """Set every node's status; a node that is not named stays INVALID."""
        for path, node in zip(self._index.paths, self._index.nodes, strict=True):
            name = tree.get(path, "INVALID")
            node.status = Status.__members__.get(name, Status.INVALID)

    def restore_attributes(self, metadata: Mapping[str, Any]) -> None:
        """Set counters, deadlines and the nodes' own data."""
        attributes = metadata.get("attributes", {})
        for path, node, described in self._stateful:
            saved = attributes.get(path, {})
            for each in described:
                if each.name in saved:
                    setattr(node, each.name, each.decode(saved[each.name]))
        for path, node in self._dumping:
            if path in metadata.get("data", {}):
                _load(node, metadata["data"][path])

    def restore_pointers(self, metadata: Mapping[str, Any]) -> None:
        """Set each composite's `current_child`: as saved, else as its children's statuses tell."""
        saved = metadata.get("current_child", {})
        for path, node, _ in self._composites:
            index = saved.get(path)
            if isinstance(index, int) and 0 <= index < len(node.children):
                node.current_child = node.children[index]
            elif node.status is Status.RUNNING and node.children:
                node.current_child = _likely_child(node)


def _likely_child(node: Composite) -> Behaviour:
    """The child that a RUNNING composite stands at, for a tree saved without the runner's metadata."""
    for child in node.children:
        if child.status is Status.RUNNING:
            return child
    if isinstance(node, Parallel):
        return node.children[-1]
    passed = Status.FAILURE if isinstance(node, Selector) else Status.SUCCESS
    return next((child for child in node.children if child.status is not passed), node.children[-1])


def _dump(node: Any) -> Any:
    return node.dump()


def _load(node: Any, data: Any) -> None:
    node.load(data)
