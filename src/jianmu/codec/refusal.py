"""How a refusal finds its way out of nested data with the path that leads to it."""

from __future__ import annotations

__all__ = ["MAX_DEPTH", "Path", "Refusal"]

Path = tuple[str | int, ...]

MAX_DEPTH = 150
"""Levels of nesting in the plain form; JSON readers in use stop at about 200."""


class Refusal(Exception):
    """Raised deep inside a value; each container on the way out adds its part of the path.

    Args:
        reason: What is wrong and what to do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self._parts: list[tuple[str | int, int]] = []

    def inside(self, part: object, container: object) -> None:
        """Add one step outwards: `part` of `container`."""
        step = part if isinstance(part, str | int) else repr(part)
        self._parts.append((step, id(container)))

    def trace(self, start: Path) -> tuple[str, Path]:
        """Return the reason and the whole path from the outside in; a container met twice is a cycle."""
        path, seen = list(start), set[int]()
        for part, container in reversed(self._parts):
            if container in seen:
                return "it contains itself; a value that is saved must be a tree", tuple(path)
            seen.add(container)
            path.append(part)
        if len(path) > 20:
            path = [*path[:10], "...", *path[-5:]]
        return self.reason, tuple(path)
