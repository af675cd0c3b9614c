"""Exact sameness of values, and what to believe when validating a stored value gives another one."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, WindowsPath
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from jianmu.codec.frozen import FrozenDict, FrozenList, FrozenSet

__all__ = ["same", "settle"]


def same(a: Any, b: Any) -> bool:
    """Whether two values are known to be the same: type, value, order, sign of zero, digits, zone and fold.

    False also for kinds that this function does not know: their `==` may mean anything.
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    compare = _COMPARE.get(kind)
    if compare is not None:
        return compare(a, b)
    if isinstance(a, enum.Enum):
        return False  # members are singletons; two flags of one value are too
    if isinstance(a, BaseModel):
        return all(same(getattr(a, part), getattr(b, part)) for part in _MODEL_PARTS)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return all(same(getattr(a, name, None), getattr(b, name, None)) for name in names)
    return isinstance(a, tuple) and hasattr(kind, "_fields") and _same_items(a, b)


_MODEL_PARTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_BY_EQUALITY = (str, int, bool, bytes, bytearray, date, timedelta, UUID, PosixPath, WindowsPath)
_BY_TEXT = (float, complex, Decimal, Fraction, range, datetime, time)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _same_text(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)


def _same_items(a: Iterable[Any], b: Iterable[Any]) -> bool:
    one, two = list(a), list(b)
    return len(one) == len(two) and all(map(same, one, two))


def _same_pairs(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    return len(a) == len(b) and (not a or (all(map(same, a, b)) and all(map(same, a.values(), b.values()))))


def _same_set(a: set[Any], b: set[Any]) -> bool:
    """Sets have no order to compare by, so only those of kinds whose equality is exact can be told."""
    kinds = {type(item) for item in a}
    return len(kinds) <= 1 and kinds == {type(item) for item in b} and kinds < set(_BY_EQUALITY) and a == b


_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(_BY_EQUALITY, _equal),
    **dict.fromkeys(_BY_TEXT, _same_text),
    **dict.fromkeys((list, FrozenList, tuple), _same_items),
    **dict.fromkeys((dict, FrozenDict, OrderedDict, Counter), _same_pairs),
    **dict.fromkeys((set, FrozenSet, frozenset), _same_set),
    defaultdict: lambda a, b: a.default_factory is b.default_factory and _same_pairs(a, b),
    deque: lambda a, b: a.maxlen == b.maxlen and _same_items(a, b),
}


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
