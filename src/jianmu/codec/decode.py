"""Plain JSON data back to values. Builds data only: no pickle, no import, no code chosen by the data."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from jianmu.codec.classes import ClassTable
from jianmu.codec.encode import FACTORIES, Stored, StoredEnum
from jianmu.codec.refusal import MAX_DEPTH, Refusal
from jianmu.codec.sameness import same, settle
from jianmu.codec.scalars import SCALARS_IN, TAG
from jianmu.codec.validating import describe, validate_fields

__all__ = ["Decoder"]

Form = dict[str, Any]


class Decoder:
    """Reads plain data.

    Args:
        classes: The classes that may be rebuilt by name; None leaves each as a `Stored`.
    """

    def __init__(self, classes: ClassTable | None) -> None:
        self._classes = classes
        self._found: dict[tuple[str, str], type] = {}
        self._readers: dict[str, Callable[[Form, int], Any]] = {
            "dict": lambda form, depth: dict(self._pairs(form, depth)),
            "tuple": lambda form, depth: tuple(self._items(form, depth)),
            "set": lambda form, depth: set(self._items(form, depth)),
            "frozenset": lambda form, depth: frozenset(self._items(form, depth)),
            "deque": lambda form, depth: deque(self._items(form, depth), form.get("max")),
            "ordereddict": lambda form, depth: OrderedDict(self._pairs(form, depth)),
            "counter": lambda form, depth: Counter(dict(self._pairs(form, depth))),
            "defaultdict": self._defaultdict,
            "enum": self._enum,
            "model": self._model,
            "dataclass": self._dataclass,
            "namedtuple": self._namedtuple,
        }

    def read(self, plain: Any, depth: int = MAX_DEPTH + 50) -> Any:
        """Return the value that `plain` stands for.

        Raises:
            Refusal: It stands for none.
        """
        kind = type(plain)
        if kind is dict:
            return self._form(plain, depth) if TAG in plain else self._dict(plain, depth - 1)
        if kind is list:
            return self._list(plain, depth - 1)
        if kind in _PLAIN:
            return plain
        if isinstance(plain, dict):
            return self.read(dict(plain), depth)
        raise Refusal(f"a {kind.__name__} is no plain JSON data")

    def _list(self, plain: list[Any], depth: int) -> list[Any]:
        _check(depth)
        out: list[Any] = []
        try:
            for item in plain:
                out.append(item if type(item) in _PLAIN else self.read(item, depth))  # noqa: PERF401 - its length is the path
        except Refusal as refusal:
            refusal.inside(len(out), plain)
            raise
        return out

    def _dict(self, plain: Form, depth: int) -> dict[str, Any]:
        _check(depth)
        out: dict[str, Any] = {}
        key: Any = ""
        try:
            for key, item in plain.items():
                if type(key) is not str:
                    raise Refusal("a key that is no str is no plain JSON data")
                out[key] = item if type(item) in _PLAIN else self.read(item, depth)
        except Refusal as refusal:
            refusal.inside(key, plain)
            raise
        return out

    def _form(self, form: Form, depth: int) -> Any:
        tag = form[TAG]
        _check(depth)
        try:
            if tag in SCALARS_IN:
                return SCALARS_IN[tag](form)
            return self._readers[tag](form, depth)
        except (ValueError, TypeError, KeyError, ArithmeticError, AttributeError, OSError) as error:
            # What the constructors of the builtin kinds raise for a payload that is not theirs.
            if not isinstance(tag, str) or (tag not in SCALARS_IN and tag not in self._readers):
                raise Refusal(
                    f"an unknown tag {tag!r}; it was written by a newer version or by something else"
                ) from None
            raise Refusal(f"a malformed {tag}: {type(error).__name__}: {error}") from None

    def _items(self, form: Form, depth: int) -> list[Any]:
        items = form["v"]
        if type(items) is not list:
            raise TypeError("a list was expected")
        return self._list(items, depth - 2)

    def _pairs(self, form: Form, depth: int) -> list[tuple[Any, Any]]:
        out: list[tuple[Any, Any]] = []
        _check(depth - 3)
        for key, item in form["v"]:
            name: Any = f"key {len(out)}"
            try:
                name = self.read(key, depth - 3)
                out.append((name, self.read(item, depth - 3)))
            except Refusal as refusal:
                refusal.inside(name, form)
                raise
        return out

    def _defaultdict(self, form: Form, depth: int) -> defaultdict[Any, Any]:
        factory = FACTORIES[form["factory"]] if "factory" in form else None
        return defaultdict(factory, self._pairs(form, depth))

    def _class(self, form: Form) -> type:
        """Look a class up once; only what was found is remembered, and the name must be text."""
        assert self._classes is not None
        key = (form[TAG], form["of"])
        if type(key[1]) is not str:
            raise TypeError("a class name was expected")
        cls = self._found.get(key)
        if cls is None:
            cls = self._found[key] = self._classes.find(key[1], key[0])
        return cls

    def _stored(self, form: Form, depth: int) -> Stored:
        rest = {key: value for key, value in form.items() if key not in {TAG, "of", "v"}}
        return Stored(form[TAG], form["of"], self._dict(_mapping(form["v"]), depth - 2), rest)

    def _enum(self, form: Form, depth: int) -> Any:
        if self._classes is None:
            return StoredEnum(form["of"], form["v"])
        cls, member = self._class(form), form["v"]
        assert issubclass(cls, enum.Enum)
        if issubclass(cls, enum.Flag) and type(member) is int:
            return cls(member)
        try:
            return cls.__members__[member]
        except KeyError:
            raise Refusal(f"the enum {cls.__qualname__} has no member {member!r} any more") from None

    def _model(self, form: Form, depth: int) -> Any:
        if self._classes is None:
            return self._stored(form, depth)
        cls = self._class(form)
        assert issubclass(cls, BaseModel)
        fields = self._dict(_mapping(form["v"]), depth - 2)
        known = cls.__pydantic_fields__
        for name in fields:
            if name not in known:
                raise Refusal(
                    f"{cls.__qualname__} has no field {name!r} any more; add a migration that drops it"
                )
        extra = self._dict(_mapping(form["extra"]), depth - 2) if "extra" in form else {}
        value = revalidated(cls, fields, extra)
        was_set = set(form["set"]) if "set" in form else set(fields)
        object.__setattr__(value, "__pydantic_fields_set__", was_set | set(extra))
        if "private" in form:
            private = self._dict(_mapping(form["private"]), depth - 2)
            if not private.keys() <= cls.__private_attributes__.keys():
                raise Refusal(f"{cls.__qualname__} has other private attributes now: {', '.join(private)}")
            object.__setattr__(value, "__pydantic_private__", private)
        return value

    def _dataclass(self, form: Form, depth: int) -> Any:
        if self._classes is None:
            return self._stored(form, depth)
        cls = self._class(form)
        stored = self._dict(_mapping(form["v"]), depth - 2)
        value: Any = object.__new__(cls)
        for field in dataclasses.fields(cls):
            if field.name in stored:
                item = stored.pop(field.name)
            elif field.default is not dataclasses.MISSING:
                item = field.default
            elif field.default_factory is not dataclasses.MISSING:
                item = field.default_factory()
            else:
                raise Refusal(
                    f"the stored {cls.__qualname__} has no field {field.name!r}; add a migration or a default"
                )
            object.__setattr__(value, field.name, item)
        if stored:
            raise Refusal(f"{cls.__qualname__} has no field {next(iter(stored))!r} any more; add a migration")
        return value

    def _namedtuple(self, form: Form, depth: int) -> Any:
        if self._classes is None:
            return self._stored(form, depth)
        cls: Any = self._class(form)
        stored = self._dict(_mapping(form["v"]), depth - 2)
        if stored.keys() != set(cls._fields):
            raise Refusal(
                f"{cls.__qualname__} has other fields now: {', '.join(cls._fields)}; add a migration"
            )
        return cls._make(stored[name] for name in cls._fields)


_PLAIN = frozenset({type(None), bool, int, float, str})


def _check(depth: int) -> None:
    if depth < 0:
        raise Refusal(f"stored data nested deeper than {MAX_DEPTH} levels")


def _mapping(value: Any) -> Form:
    if type(value) is not dict:
        raise TypeError("an object was expected")
    return value


def revalidated(cls: type[BaseModel], fields: Form, extra: Form) -> Any:
    """Return a model of `fields`, which must still be valid; see `settle` for validators that change values.

    Raises:
        Refusal: The class refuses the fields.
    """
    value = _validated(cls, fields, extra)
    for name, item in value.__dict__.items():
        if item is not fields.get(name, item) and not same(item, fields[name]):
            settled = settle(fields, value.__dict__, lambda held: _validated(cls, held, extra).__dict__)
            object.__setattr__(value, "__dict__", settled)
            break
    return value


def _validated(cls: type[BaseModel], fields: Mapping[str, Any], extra: Form) -> Any:
    try:
        value = validate_fields(cls, fields, extra)
    except ValidationError as error:
        raise Refusal(f"a stored {cls.__qualname__} is not valid any more: {describe(error)}") from None
    except Exception as error:  # a user's validator may raise anything
        raise Refusal(f"a validator of {cls.__qualname__} failed: {type(error).__name__}: {error}") from error
    if type(value) is not cls:
        raise Refusal(f"a validator of {cls.__qualname__} returned a {type(value).__qualname__}")
    return value
