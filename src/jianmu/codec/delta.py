"""What changed between two trees of plain JSON data, and how to put it back.

Plain data is None, bool, int, float, str, list and dict with str keys. A change is a JSON-able list
``[op, path, value]``: ``["set", ["a", "b"], 1]``, ``["append", ["messages"], [item, ...]]`` or
``["del", ["a", "b"]]``. The path leads through dict keys only; a list changes by append or as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Change", "apply_changes", "diff", "merge_changes"]

Change = list[Any]
"""``[op, path, value]``; ``["del", path]`` has no value."""


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the changes that lead from `old` to `new`; shared parts are found by identity first."""
    changes: list[Change] = []
    _diff_dict(old, new, [], changes)
    return changes


def _diff_dict(old: Mapping[str, Any], new: Mapping[str, Any], path: list[str], out: list[Change]) -> None:
    kept = _kept_in_place(old, new)
    out.extend(["del", [*path, key]] for key in old if key not in kept)
    for key, value in new.items():
        if key in kept:
            _diff_value(old[key], value, [*path, key], out)
        else:
            out.append(["set", [*path, key], value])


def _kept_in_place(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Return the keys that may stay where they are; the rest are put in again, for the order of `new`."""
    if old.keys() == new.keys() and list(old) == list(new):
        return set(old)
    kept: set[str] = set()
    ahead = iter(old)
    for key in new:
        if key not in old:
            break  # it goes to the end, and so does everything after it
        for candidate in ahead:
            if candidate == key:
                kept.add(key)
                break
        else:
            break
    return kept


def _diff_value(old: Any, new: Any, path: list[str], out: list[Change]) -> None:
    if old is new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        _diff_dict(old, new, path, out)
    elif isinstance(old, list) and isinstance(new, list) and _is_prefix(old, new):
        if len(new) > len(old):
            out.append(["append", path, new[len(old) :]])
    elif not _same(old, new):
        out.append(["set", path, new])


def _is_prefix(old: Sequence[Any], new: Sequence[Any]) -> bool:
    return len(old) <= len(new) and all(_same(a, b) for a, b in zip(old, new, strict=False))


def _same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from True and 1.0 and minds the order of keys, as JSON text does."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) and (a != 0 or str(a) == str(b))


def apply_changes(base: dict[str, Any], changes: Sequence[Change]) -> dict[str, Any]:
    """Apply `changes` to `base` in place and return it.

    The values of `changes` become part of `base` and may be changed by later calls: pass each list of changes
    to one base only (what was just read from JSON is always fine).
    """
    for change in changes:
        op, path = change[0], change[1]
        parent: Any = base
        for key in path[:-1]:
            parent = parent[key]
        if op == "set":
            parent[path[-1]] = change[2]
        elif op == "append":
            parent[path[-1]].extend(change[2])
        else:
            del parent[path[-1]]
    return base


def merge_changes(changes: Sequence[Change]) -> list[Change]:
    """Return fewer changes of the same effect, also on the order of keys.

    Changes of one place are merged: appends join, and what is set again counts once. Around a change of a
    place inside or above another one, and around a removal, everything stays in order.

    Args:
        changes: Any list of changes that `apply_changes` takes; its values become part of the result.
    """
    merged: list[Change] = []
    at: dict[tuple[str, ...], Change] = {}
    above: set[tuple[str, ...]] = set()
    for change in changes:
        path = tuple(change[1])
        earlier = at.get(path)
        if earlier is not None and change[0] != "del":
            _merge_into(earlier, change)
            continue
        parents = [path[:length] for length in range(len(path))]
        if change[0] == "del" or path in above or any(parent in at for parent in parents):
            at, above = {}, set()
        change = [change[0], list(path), *change[2:]]
        merged.append(change)
        if change[0] != "del":
            at[path] = change
            above.update(parents)
    return merged


def _merge_into(earlier: Change, change: Change) -> None:
    if change[0] == "append":
        earlier[2].extend(change[2])
    else:
        earlier[0], earlier[2] = "set", change[2]
