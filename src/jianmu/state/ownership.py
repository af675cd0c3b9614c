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
from jianmu.codec.decode import describe
from jianmu.codec.frozen import FrozenDict, FrozenList, FrozenSet
from jianmu.codec.refusal import MAX_DEPTH, Refusal
from jianmu.codec.scalars import SCALARS_OUT
from jianmu.state.lending import CopyingList, attributes, dataclass_like, model_like

__all__ = ["Owner"]

Result = tuple[Any, bool]
"""The state's own value, and whether nothing in it can change."""

Taker = Callable[[Any, int, bool], Result]

_FIXED = frozenset(SCALARS_OUT) - {bytearray}


class _Untakeable(Exception):
    """A cycle, or deeper than a save allows."""


class Owner:
    """Takes values into the state.

    A taker gets a value, the levels left, and whether it stands in a frozen model.

    Args:
        check: Whether models are validated; assigning to a model's field does not validate by default, and
            a model that its own class refuses could never be restored.
    """

    def __init__(self, *, check: bool) -> None:
        self._check = check
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
            bytearray: lambda value, depth, frozen: (bytearray(value), False),
        }

    def take(self, value: Any) -> Result:
        """Return the state's own form of `value`, and whether nothing in it can change.

        A value that contains itself stays as it is: it cannot be saved, and the save will say so.

        Raises:
            Refusal: A model in it holds what its own class refuses.
        """
        if type(value) in _FIXED:
            return value, True
        try:
            return self._take(value, MAX_DEPTH, False)
        except _Untakeable:
            return value, True

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

    def _items(self, values: Any, owner: Any, depth: int, frozen: bool) -> tuple[list[Any], bool]:
        out: list[Any] = []
        fixed = True
        try:
            for value in values:
                if type(value) in _FIXED:
                    out.append(value)
                    continue
                own, still = self._take(value, depth, frozen)
                out.append(own)
                fixed = fixed and still
        except Refusal as refusal:
            refusal.inside(len(out), owner)
            raise
        return out, fixed

    def _fields(
        self, fields: dict[Any, Any], owner: Any, depth: int, frozen: bool
    ) -> tuple[dict[Any, Any], bool]:
        own: dict[Any, Any] = {}
        fixed = True
        key: Any = ""
        try:
            for key, value in fields.items():
                if type(value) in _FIXED:
                    own[key] = value
                    continue
                own[key], still = self._take(value, depth, frozen)
                fixed = fixed and still
        except Refusal as refusal:
            refusal.inside(key, owner)
            raise
        return own, fixed

    def _list(self, value: Any, depth: int, frozen: bool) -> Result:
        items, fixed = self._items(list.__iter__(value), value, depth, frozen)
        return (FrozenList(items), fixed) if frozen else (items, False)

    def _set(self, value: Any, depth: int, frozen: bool) -> Result:
        items, fixed = self._items(value, value, depth, frozen)
        return (FrozenSet(items), fixed) if frozen else (set(items), False)

    def _tuple(self, value: Any, depth: int, frozen: bool) -> Result:
        if not value:
            return value, True
        items, fixed = self._items(value, value, depth, frozen)
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value, fixed
        kind = type(value)
        return (kind._make(items) if hasattr(kind, "_make") else kind(items)), fixed

    def _deque(self, value: deque[Any], depth: int, frozen: bool) -> Result:
        return deque(self._items(value, value, depth, frozen)[0], value.maxlen), False

    def _dict(self, value: dict[Any, Any], depth: int, frozen: bool) -> Result:
        kind = type(value)
        own, fixed = self._fields(value, value, depth, frozen)
        if kind is dict or kind is FrozenDict:
            return (FrozenDict(own), fixed) if frozen else (own, False)
        if isinstance(value, defaultdict):
            return defaultdict(value.default_factory, own), False
        return kind(own), False

    def _model(self, kind: type[BaseModel]) -> Taker:
        freeze = bool(kind.model_config.get("frozen"))

        def take(value: BaseModel, depth: int, frozen: bool) -> Result:
            if self._check:
                _check_model(kind, value)
            held, fixed = self._fields(value.__dict__, value, depth, freeze)
            extra, private = value.__pydantic_extra__, value.__pydantic_private__
            if extra:
                extra, still = self._fields(extra, value, depth, freeze)
                fixed = fixed and still
            if private:
                private, fixed = self._fields(private, value, depth, False)[0], False
            return model_like(value, held, extra, private), freeze and fixed

        return take

    def _dataclass(self, value: Any, depth: int, frozen: bool) -> Result:
        freeze = bool(type(value).__dataclass_params__.frozen)
        held, fixed = self._fields(attributes(value), value, depth, freeze)
        return dataclass_like(value, held), freeze and fixed


def _share(value: Any, depth: int, frozen: bool) -> Result:
    return value, True


def _check_model(kind: type[BaseModel], value: BaseModel) -> None:
    """Refuse a model that its own class would refuse when it is restored."""
    data: Any = value.__dict__
    names = kind.__pydantic_fields__
    if data.keys() != names.keys():  # a cached property beside the fields, or a field missing
        data = {name: data[name] for name in names if name in data}
        if len(data) < len(names):
            missing = ", ".join(name for name in names if name not in data)
            raise Refusal(f"this {kind.__qualname__} was built without {missing}; use its constructor")
    if kind.__pydantic_root_model__:
        data = data["root"]
    elif value.__pydantic_extra__:
        data = {**value.__pydantic_extra__, **data}
    try:
        kind.__pydantic_validator__.validate_python(data, by_alias=False, by_name=True)
    except ValidationError as error:
        raise Refusal(f"this {kind.__qualname__} is not valid: {describe(error)}") from None
    except Exception as error:
        raise Refusal(
            f"a validator of {kind.__qualname__} fails on the value it made: {type(error).__name__}: {error}"
        ) from error
