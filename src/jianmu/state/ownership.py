"""Values that belong to the state: copied on the way in, never at risk on the way out.

What cannot change is shared. Lists, dicts, sets and models that can change are copied when they come in and
again each time they are read (`lending`). A frozen model is made frozen all the way down: its lists, dicts
and sets become read-only ones, so that it too can be shared. An object of a class unknown here is passed on
as it is; it cannot be saved.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from jianmu.codec.classes import is_namedtuple
from jianmu.codec.frozen import FrozenDict, FrozenList, FrozenSet
from jianmu.codec.refusal import MAX_DEPTH, Refusal
from jianmu.codec.scalars import SCALARS_OUT
from jianmu.codec.validating import describe, validate_fields
from jianmu.state.lending import CopyingList, attributes, dataclass_like, model_like

__all__ = ["DEEP", "FIXED", "FLAT", "Owner"]

FIXED, FLAT, DEEP = 2, 1, 0
"""Nothing in a value can change; only the value itself can, not what it holds; anything may."""

Result = tuple[Any, int]
"""The state's own value, and which of the three it is."""

Taker = Callable[[Any, int, bool], Result]

_FIXED = frozenset(SCALARS_OUT) - {bytearray}


class _Untakeable(Exception):
    """A cycle, or deeper than a save allows."""


class Owner:
    """Takes values into the state.

    A taker gets a value, the levels left, and whether it stands in a frozen model.

    Models are validated, as assigning to a field does not validate by default, and a model that its own class
    refuses could never be restored.

    Args:
        ours: Whether the values were just decoded: nobody else holds them, and they are valid.
    """

    def __init__(self, *, ours: bool = False) -> None:
        self._ours = ours
        self._takers: dict[type, Taker] = {
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
            bytearray: lambda value, depth, frozen: (bytearray(value), FLAT),
        }

    def take(self, value: Any) -> Result:
        """Return the state's own form of `value`, and whether it is FIXED, FLAT or DEEP.

        A value that contains itself stays as it is: it cannot be saved, and the save will say so.

        Raises:
            Refusal: A model in it holds what its own class refuses.
        """
        if type(value) in _FIXED:
            return value, FIXED
        try:
            return self._take(value, MAX_DEPTH, False)
        except _Untakeable:
            return value, FIXED

    def _take(self, value: Any, depth: int, frozen: bool) -> Result:
        if depth <= 0:
            raise _Untakeable
        kind = type(value)
        taker = self._takers.get(kind)
        if taker is None:
            taker = self._takers[kind] = self._taker(kind)
        return taker(value, depth - 1, frozen)

    def _taker(self, kind: type) -> Taker:
        if issubclass(kind, BaseModel):
            return self._model(kind)
        if is_namedtuple(kind):
            return self._tuple
        if dataclasses.is_dataclass(kind) and not issubclass(kind, enum.Enum):
            return self._dataclass
        return _share

    def _items(self, values: Any, owner: Any, depth: int, frozen: bool) -> tuple[list[Any], int]:
        """Return the items, and FIXED if they all are, else DEEP."""
        out: list[Any] = []
        level = FIXED
        try:
            for value in values:
                if type(value) in _FIXED:
                    out.append(value)
                    continue
                own, inner = self._take(value, depth, frozen)
                out.append(own)
                level = level if inner == FIXED else DEEP
        except Refusal as refusal:
            refusal.inside(len(out), owner)
            raise
        return out, level

    def _fields(
        self, fields: dict[Any, Any], owner: Any, depth: int, frozen: bool
    ) -> tuple[dict[Any, Any], int]:
        """Return the fields, and FIXED if they all are, else DEEP."""
        own: dict[Any, Any] = {}
        level = FIXED
        key: Any = ""
        try:
            for key, value in fields.items():
                if type(value) in _FIXED:
                    own[key] = value
                    continue
                own[key], inner = self._take(value, depth, frozen)
                level = level if inner == FIXED else DEEP
        except Refusal as refusal:
            refusal.inside(key, owner)
            raise
        return own, level

    def _list(self, value: Any, depth: int, frozen: bool) -> Result:
        items, level = self._items(list.__iter__(value), value, depth, frozen)
        return (FrozenList(items), level) if frozen else (items, _outside(level))

    def _set(self, value: Any, depth: int, frozen: bool) -> Result:
        items, level = self._items(value, value, depth, frozen)
        return (FrozenSet(items), level) if frozen else (set(items), _outside(level))

    def _tuple(self, value: Any, depth: int, frozen: bool) -> Result:
        if not value:
            return value, FIXED
        items, level = self._items(value, value, depth, frozen)
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value, level
        kind = type(value)
        return (kind._make(items) if hasattr(kind, "_make") else kind(items)), level

    def _deque(self, value: deque[Any], depth: int, frozen: bool) -> Result:
        items, level = self._items(value, value, depth, frozen)
        return deque(items, value.maxlen), _outside(level)

    def _dict(self, value: dict[Any, Any], depth: int, frozen: bool) -> Result:
        kind = type(value)
        own, level = self._fields(value, value, depth, frozen)
        if kind is dict or kind is FrozenDict:
            return (FrozenDict(own), level) if frozen else (own, _outside(level))
        if isinstance(value, defaultdict):
            return defaultdict(value.default_factory, own), _outside(level)
        return kind(own), _outside(level)

    def _model(self, kind: type[BaseModel]) -> Taker:
        freeze = bool(kind.model_config.get("frozen"))

        def take(value: BaseModel, depth: int, frozen: bool) -> Result:
            if not self._ours:
                _check_model(kind, value)
            held, level = self._fields(value.__dict__, value, depth, freeze)
            extra, private = value.__pydantic_extra__, value.__pydantic_private__
            if extra is not None:
                extra, inner = self._fields(extra, value, depth, freeze)
                level = min(level, inner)
            if private is not None:  # not even a frozen model freezes its private attributes
                private, level = self._fields(private, value, depth, False)[0], DEEP
            if self._ours and extra is None and private is None:
                value.__dict__.update(held)
                return value, level if freeze else _outside(level)
            return model_like(value, held, extra, private), level if freeze else _outside(level)

        return take

    def _dataclass(self, value: Any, depth: int, frozen: bool) -> Result:
        freeze = bool(type(value).__dataclass_params__.frozen)
        held, level = self._fields(attributes(value), value, depth, freeze)
        return dataclass_like(value, held), level if freeze else _outside(level)


def _outside(level: int) -> int:
    """What a container is that can change itself, by what its contents are."""
    return FLAT if level == FIXED else DEEP


def _share(value: Any, depth: int, frozen: bool) -> Result:
    return value, FIXED


def _check_model(kind: type[BaseModel], value: BaseModel) -> None:
    """Refuse a model that its own class would refuse when it is restored."""
    data: Any = value.__dict__
    names = kind.__pydantic_fields__
    if data.keys() != names.keys():  # a cached property beside the fields, or a field missing
        data = {name: data[name] for name in names if name in data}
        if len(data) < len(names):
            missing = ", ".join(name for name in names if name not in data)
            raise Refusal(f"this {kind.__qualname__} was built without {missing}; use its constructor")
    try:
        validate_fields(kind, data, value.__pydantic_extra__)
    except ValidationError as error:
        raise Refusal(f"this {kind.__qualname__} is not valid: {describe(error)}") from None
    except Exception as error:  # a user's validator may raise anything
        raise Refusal(
            f"a validator of {kind.__qualname__} fails on the value it made: {type(error).__name__}: {error}"
        ) from error
