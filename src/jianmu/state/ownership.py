"""Values that belong to the state: copied on the way in, never at risk on the way out.

What cannot change is shared. Lists, dicts, sets and models that can change are copied when they come in and
again each time they are read. A frozen model is made frozen all the way down: its lists, dicts and sets
become read-only ones, so that it too can be shared. An object of a class unknown here is passed on as it is;
it cannot be saved.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from jianmu.codec.classes import is_namedtuple
from jianmu.codec.decode import describe
from jianmu.codec.frozen import FrozenDict, FrozenList, FrozenSet
from jianmu.codec.refusal import MAX_DEPTH, Refusal

__all__ = ["CopyingList", "Owner", "lend"]

Result = tuple[Any, bool]
"""The state's own value, and whether nothing in it can change."""


class Owner:
    """Takes values into the state. A taker's last argument says whether it is inside a frozen model."""

    def __init__(self) -> None:
        self._takers: dict[type, Callable[[Any, int, bool], Result]] = {
            list: self._list,
            FrozenList: self._list,
            CopyingList: self._list,
            dict: self._dict,
            FrozenDict: self._dict,
            OrderedDict: self._dict,
            Counter: self._dict,
            defaultdict: self._dict,
            set: self._set,
            FrozenSet: self._set,
            tuple: self._tuple,
            frozenset: self._tuple,
            deque: self._deque,
            bytearray: lambda value, depth, frozen: (bytearray(value), False),
        }

    def take(self, value: Any) -> Result:
        """Return the state's own form of `value`, and whether nothing in it can change.

        Raises:
            Refusal: A model in it holds what its own class refuses.
        """
        return self._take(value, MAX_DEPTH, False)

    def _take(self, value: Any, depth: int, frozen: bool) -> Result:
        kind = type(value)
        taker = self._takers.get(kind)
        if taker is None:
            taker = self._takers[kind] = self._taker(kind)
        if depth <= 0:  # a cycle or too deep for a save, which will say so
            return value, False
        return taker(value, depth - 1, frozen)

    def _taker(self, kind: type) -> Callable[[Any, int, bool], Result]:
        if issubclass(kind, BaseModel):
            return self._model
        if issubclass(kind, enum.Enum):
            return _share
        if is_namedtuple(kind):
            return self._tuple
        if dataclasses.is_dataclass(kind):
            return self._dataclass
        return _share

    def _items(self, values: Any, owner: Any, depth: int, frozen: bool) -> tuple[list[Any], bool]:
        out: list[Any] = []
        fixed = True
        take = self._take
        try:
            for value in values:
                own, still = take(value, depth, frozen)
                out.append(own)
                fixed = fixed and still
        except Refusal as refusal:
            refusal.inside(len(out), owner)
            raise
        return out, fixed

    def _list(self, value: Any, depth: int, frozen: bool) -> Result:
        items, fixed = self._items(list.__iter__(value), value, depth, frozen)
        return (FrozenList(items), fixed) if frozen else (items, False)

    def _set(self, value: Any, depth: int, frozen: bool) -> Result:
        items, fixed = self._items(value, value, depth, frozen)
        return (FrozenSet(items), fixed) if frozen else (set(items), False)

    def _tuple(self, value: Any, depth: int, frozen: bool) -> Result:
        items, fixed = self._items(value, value, depth, frozen)
        kind = type(value)
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value, fixed
        return (kind._make(items) if hasattr(kind, "_make") else kind(items)), fixed

    def _deque(self, value: deque[Any], depth: int, frozen: bool) -> Result:
        return deque(self._items(value, value, depth, False)[0], value.maxlen), False

    def _dict(self, value: dict[Any, Any], depth: int, frozen: bool) -> Result:
        kind = type(value)
        own, fixed = self._mapping(value, value, depth, frozen)
        if kind is dict or kind is FrozenDict:
            return (FrozenDict(own), fixed) if frozen else (own, False)
        if isinstance(value, defaultdict):
            return defaultdict(value.default_factory, own), False
        return kind(own), False

    def _mapping(
        self, pairs: dict[Any, Any], owner: Any, depth: int, frozen: bool
    ) -> tuple[dict[Any, Any], bool]:
        own: dict[Any, Any] = {}
        fixed = True
        key: Any = ""
        try:
            for key, value in pairs.items():
                item, still = self._take(value, depth, frozen)
                own[self._take(key, depth, True)[0] if type(key) is not str else key] = item
                fixed = fixed and still
        except Refusal as refusal:
            refusal.inside(key, owner)
            raise
        return own, fixed

    def _model(self, value: BaseModel, depth: int, frozen: bool) -> Result:
        kind = type(value)
        _check_model(kind, value)
        freeze = bool(kind.model_config.get("frozen"))
        held, fixed = self._mapping(value.__dict__, value, depth, freeze)
        extra = value.__pydantic_extra__
        if extra:
            extra, still = self._mapping(extra, value, depth, freeze)
            fixed = fixed and still
        private = value.__pydantic_private__
        if private:
            private = self._mapping(private, value, depth, False)[0]
            fixed = False
        return _model_like(value, held, extra, private), freeze and fixed

    def _dataclass(self, value: Any, depth: int, frozen: bool) -> Result:
        freeze = bool(type(value).__dataclass_params__.frozen)
        held, fixed = self._mapping(_attributes(value), value, depth, freeze)
        return _object_like(value, held), freeze and fixed


def _share(value: Any, depth: int, frozen: bool) -> Result:
    return value, True


def _attributes(value: Any) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(value)]
    return {
        **{name: getattr(value, name) for name in names if hasattr(value, name)},
        **getattr(value, "__dict__", {}),
    }


def _object_like(value: Any, held: dict[str, Any]) -> Any:
    new = object.__new__(type(value))
    for name, item in held.items():
        object.__setattr__(new, name, item)
    return new


def _model_like(value: Any, held: dict[str, Any], extra: Any, private: Any) -> Any:
    new: Any = object.__new__(type(value))
    object.__setattr__(new, "__dict__", held)
    object.__setattr__(new, "__pydantic_fields_set__", set(value.__pydantic_fields_set__))
    object.__setattr__(new, "__pydantic_extra__", extra)
    object.__setattr__(new, "__pydantic_private__", private)
    return new


def _check_model(kind: type[BaseModel], value: BaseModel) -> None:
    """Refuse a model that could not be rebuilt; assigning to a model's field does not validate by default."""
    held = {name: value.__dict__[name] for name in kind.model_fields if name in value.__dict__}
    data: Any = (
        held.get("root") if kind.__pydantic_root_model__ else {**(value.__pydantic_extra__ or {}), **held}
    )
    try:
        kind.model_validate(data, by_alias=False, by_name=True)
    except ValidationError as error:
        raise Refusal(f"this {kind.__qualname__} is not valid: {describe(error)}") from None
    except Exception as error:
        raise Refusal(f"a validator of {kind.__qualname__} failed on its own value: {error}") from error


def lend(value: Any) -> Any:
    """Return a copy of an owned value in which everything that can change is the reader's own."""
    kind = type(value)
    if kind in _LENDERS:
        return _LENDERS[kind](value)
    if isinstance(value, BaseModel):
        held = {key: lend(item) for key, item in value.__dict__.items()}
        extra = value.__pydantic_extra__
        private = value.__pydantic_private__
        return _model_like(
            value,
            held,
            {key: lend(item) for key, item in extra.items()} if extra else extra,
            {key: lend(item) for key, item in private.items()} if private else private,
        )
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(map(lend, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object_like(value, {key: lend(item) for key, item in _attributes(value).items()})
    return value


def _lend_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    return {key: lend(item) for key, item in value.items()}


_LENDERS: dict[type, Callable[[Any], Any]] = {
    list: lambda value: [lend(item) for item in value],
    FrozenList: lambda value: FrozenList(map(lend, value)),
    FrozenDict: lambda value: FrozenDict(_lend_dict(value)),
    FrozenSet: lambda value: FrozenSet(map(lend, value)),
    dict: _lend_dict,
    set: lambda value: set(map(lend, value)),
    tuple: lambda value: tuple(map(lend, value)),
    frozenset: lambda value: frozenset(map(lend, value)),
    deque: lambda value: deque(map(lend, value), value.maxlen),
    bytearray: bytearray,
    OrderedDict: lambda value: OrderedDict(_lend_dict(value)),
    Counter: lambda value: Counter(_lend_dict(value)),
    defaultdict: lambda value: defaultdict(value.default_factory, _lend_dict(value)),
}


class CopyingList(FrozenList[Any]):
    """A read-only list whose items can change: each item read is the reader's own copy."""

    def __iter__(self) -> Iterator[Any]:
        return map(lend, list.__iter__(self))

    def __reversed__(self) -> Iterator[Any]:
        return map(lend, list.__reversed__(self))

    def __getitem__(self, index: Any) -> Any:
        return lend(list.__getitem__(self, index))

    def __add__(self, other: Any) -> Any:
        return list(self) + list(other)

    def __radd__(self, other: Any) -> Any:
        return list(other) + list(self)

    def __mul__(self, times: Any) -> Any:
        return list(self) * times

    __rmul__ = __mul__
