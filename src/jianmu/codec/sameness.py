"""Equality that minds types, and what to believe when validating a stored value gives another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

__all__ = ["same", "settle"]


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal and of the same types all the way down; NaN is the same as NaN."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is str or kind is int:
        return bool(a == b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and (not a or all(map(same, a, b)))
    if isinstance(a, dict):
        return len(a) == len(b) and (
            not a or (all(map(same, a, b)) and all(map(same, a.values(), b.values())))
        )
    if isinstance(a, BaseModel):
        return same(a.__dict__, b.__dict__) and same(a.__pydantic_extra__, b.__pydantic_extra__)
    return bool(a == b) or (a != a and b != b)


def settle(
    stored: Mapping[str, Any], validated: Mapping[str, Any], again: Callable[[Any], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the fields to restore: what was stored, or what the present schema makes of it.

    Both are mostly the same. Where they differ, validating once more tells why. A schema that changed (an int
    field that is a float field now) leaves its own result alone, so that is the value. A validator that
    changes its own result (adds a prefix, hashes) did so before the value was stored, so the stored one is.

    Args:
        stored: The fields as they were stored.
        validated: The same fields after validation, and new ones with their defaults.
        again: Validates the fields once more.
    """
    changed = [name for name, value in validated.items() if name in stored and not same(stored[name], value)]
    settled = dict(validated)
    if changed:
        twice = again(settled)
        settled.update({name: stored[name] for name in changed if not same(validated[name], twice.get(name))})
    return settled
