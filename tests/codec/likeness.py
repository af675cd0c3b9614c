"""Whether two values are alike in every respect that may not be lost."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections import defaultdict, deque
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from pydantic import BaseModel


def difference(a: Any, b: Any, path: str = "") -> str | None:
    """Return where they differ in value, type, order, zone, fold, sign of zero or hidden parts, or None."""
    if type(a) is not type(b):
        return f"{path}: {type(a)} {type(b)}"
    if isinstance(a, enum.Enum):
        return None if a is b else f"{path}: {a!r} {b!r}"
    if isinstance(a, float):
        alike = (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
        return None if alike else f"{path}: {a!r} {b!r}"
    if isinstance(a, complex):
        return difference((a.real, a.imag), (b.real, b.imag), path)
    if isinstance(a, Decimal):
        return None if a.as_tuple() == b.as_tuple() else f"{path}: {a!r} {b!r}"
    if isinstance(a, datetime | time):
        mine = (a.replace(tzinfo=None), a.fold, type(a.tzinfo), str(a.tzinfo), a.utcoffset())
        other = (b.replace(tzinfo=None), b.fold, type(b.tzinfo), str(b.tzinfo), b.utcoffset())
        return None if mine == other else f"{path}: {mine} {other}"
    if isinstance(a, BaseModel):
        parts = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
        return difference([getattr(a, part) for part in parts], [getattr(b, part) for part in parts], path)
    if dataclasses.is_dataclass(a):
        names = [field.name for field in dataclasses.fields(a)]
        return difference([getattr(a, name) for name in names], [getattr(b, name) for name in names], path)
    if isinstance(a, defaultdict) and a.default_factory is not b.default_factory:
        return f"{path}: {a.default_factory} {b.default_factory}"
    if isinstance(a, deque) and a.maxlen != b.maxlen:
        return f"{path}: {a.maxlen} {b.maxlen}"
    if isinstance(a, dict):
        return difference(list(a.items()), list(b.items()), path)
    if isinstance(a, set | frozenset):
        return difference(sorted(map(_fingerprint, a)), sorted(map(_fingerprint, b)), path)
    if isinstance(a, list | tuple | deque):
        if len(a) != len(b):
            return f"{path}: {len(a)} items, {len(b)} items"
        found = (difference(x, y, f"{path}.{at}") for at, (x, y) in enumerate(zip(a, b, strict=True)))
        return next((each for each in found if each), None)
    return None if a == b else f"{path}: {a!r} {b!r}"


def _fingerprint(item: Any) -> str:
    """A text of a hashable item that is the same for alike items, whatever the order of a set in it."""
    if isinstance(item, frozenset):
        return f"frozenset{sorted(map(_fingerprint, item))}"
    if dataclasses.is_dataclass(item):
        return (
            f"{type(item)}{_fingerprint(tuple(vars(item) if hasattr(item, '__dict__') else (item.label,)))}"
        )
    if isinstance(item, tuple):
        return f"{type(item)}{list(map(_fingerprint, item))}"
    return f"{type(item)}{item!a}{getattr(item, 'fold', '')}"
