"""What a reader gets of a value that can change: a copy of its own."""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from pydantic import BaseModel

from jianmu.codec.frozen import FrozenDict, FrozenList, FrozenSet

__all__ = ["CopyingList", "attributes", "dataclass_like", "lend", "model_like", "shallow"]


def lend(value: Any) -> Any:
    """Return a copy of an owned value in which everything that can change is the reader's own."""
    kind = type(value)
    lender = _LENDERS.get(kind)
    if lender is not None:
        return lender(value)
    if isinstance(value, BaseModel):
        held, extra, private = value.__dict__, value.__pydantic_extra__, value.__pydantic_private__
        lent = _lend_dict(held)
        if kind.model_config.get("frozen") and not extra and private is None and _identical(lent, held):
            return value
        return model_like(
            value,
            lent,
            None if extra is None else _lend_dict(extra),
            None if private is None else _lend_dict(private),
        )
    if isinstance(value, tuple) and hasattr(kind, "_make"):
        return kind._make(map(lend, value))
    if dataclasses.is_dataclass(kind):
        held = attributes(value)
        lent = _lend_dict(held)
        return value if _is_frozen(value) and _identical(lent, held) else dataclass_like(value, lent)
    return value


def _is_frozen(value: Any) -> bool:
    return bool(value.__dataclass_params__.frozen)


def _identical(lent: dict[Any, Any], held: dict[Any, Any]) -> bool:
    return all(map(operator.is_, lent.values(), held.values()))


def _lend_frozen_list(value: FrozenList[Any]) -> FrozenList[Any]:
    lent = [lend(item) for item in list.__iter__(value)]
    return value if all(map(operator.is_, lent, list.__iter__(value))) else FrozenList(lent)


def _lend_frozen_dict(value: FrozenDict[Any, Any]) -> FrozenDict[Any, Any]:
    lent = _lend_dict(value)
    return value if _identical(lent, value) else FrozenDict(lent)


def shallow(value: Any) -> Any:
    """Return a copy of an owned value that can only change itself, not what it holds."""
    kind = type(value)
    if kind is list or kind is dict or kind is set:
        return kind(value)
    if isinstance(value, BaseModel):
        extra = value.__pydantic_extra__
        return model_like(value, dict(value.__dict__), None if extra is None else dict(extra), None)
    if dataclasses.is_dataclass(kind):
        return dataclass_like(value, attributes(value))
    return copy(value)


def attributes(value: Any) -> dict[str, Any]:
    """Return what a dataclass instance holds: its `__dict__`, and its slots if it has any."""
    held = dict(getattr(value, "__dict__", {}))
    for field in dataclasses.fields(value):
        if field.name not in held and hasattr(value, field.name):
            held[field.name] = getattr(value, field.name)
    return held


def dataclass_like(value: Any, held: dict[str, Any]) -> Any:
    """Return a new instance of `value`'s class with other contents; no constructor runs."""
    new: Any = object.__new__(type(value))
    for name, item in held.items():
        object.__setattr__(new, name, item)
    return new


def model_like(value: Any, held: dict[str, Any], extra: Any, private: Any) -> Any:
    """Return a new instance of `value`'s model class with other contents; no validator runs."""
    new: Any = object.__new__(type(value))
    set_attribute = object.__setattr__
    set_attribute(new, "__dict__", held)
    set_attribute(new, "__pydantic_fields_set__", value.__pydantic_fields_set__.copy())
    set_attribute(new, "__pydantic_extra__", extra)
    set_attribute(new, "__pydantic_private__", private)
    return new


def _lend_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    return {key: lend(item) for key, item in value.items()}


_LENDERS: dict[type, Callable[[Any], Any]] = {
    **{kind: lambda value: value for kind in (type(None), bool, int, float, str, bytes)},
    list: lambda value: [lend(item) for item in value],
    FrozenList: _lend_frozen_list,
    dict: _lend_dict,
    FrozenDict: _lend_frozen_dict,
    set: set,  # what is hashable does not change
    FrozenSet: lambda value: value,
    tuple: lambda value: tuple(map(lend, value)),
    deque: lambda value: deque(map(lend, value), value.maxlen),
    bytearray: bytearray,
    OrderedDict: lambda value: OrderedDict(_lend_dict(value)),
    Counter: lambda value: Counter(_lend_dict(value)),
    defaultdict: lambda value: defaultdict(value.default_factory, _lend_dict(value)),
}


class CopyingList(FrozenList[Any]):
    """A read-only list whose items can change: each item read is the reader's own copy.

    C code that takes lists apart by itself (pydantic's validation, `json`) sees the items themselves.
    """

    def __iter__(self) -> Iterator[Any]:
        return map(lend, list.__iter__(self))

    def __reversed__(self) -> Iterator[Any]:
        return map(lend, list.__reversed__(self))

    def __getitem__(self, index: Any) -> Any:
        return lend(list.__getitem__(self, index))

    def __add__(self, other: Any) -> Any:
        return list(self) + other

    def __radd__(self, other: Any) -> Any:
        return other + list(self)

    def __mul__(self, times: Any) -> Any:
        return list(self) * times

    __rmul__ = __mul__
