"""Values to plain JSON data, each by its exact type."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from jianmu.codec.classes import ClassTable, kind_of
from jianmu.codec.frozen import FrozenDict, FrozenList, FrozenSet
from jianmu.codec.refusal import MAX_DEPTH, Refusal
from jianmu.codec.scalars import SCALARS_OUT, TAG, is_url, str_out, url_out

__all__ = ["FACTORIES", "Encoder", "Stored", "StoredEnum"]

Writer = Callable[[Any, int], Any]

FACTORIES: dict[str, type] = {
    kind.__name__: kind
    for kind in (list, dict, set, frozenset, tuple, str, int, float, bool, bytes, bytearray, Counter, deque)
}
"""The default factories of a defaultdict that are kept."""


class Stored(dict[str, Any]):
    """A stored model, dataclass or named tuple as a migration sees it: its fields, and its class in `of`."""

    __slots__ = ("extras", "kind", "of")

    def __init__(self, kind: str, of: str, fields: Mapping[str, Any], extras: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.kind = kind
        self.of = of
        self.extras = dict(extras)

    __hash__ = object.__hash__  # type: ignore[assignment] # it may stand in a set or be a key, like what it stands for


@dataclasses.dataclass(frozen=True, slots=True)
class StoredEnum:
    """A stored enum member as a migration sees it: the class name and the member's name (a flag's value)."""

    of: str
    member: str | int


class Encoder:
    """Writes values; what a type needs is worked out when it is first met.

    Args:
        classes: The classes that may be written by name.
    """

    def __init__(self, classes: ClassTable) -> None:
        self._classes = classes
        self._writers: dict[type, Writer] = {kind: _leaf(write) for kind, write in SCALARS_OUT.items()}
        self._writers |= {
            list: self._list,
            FrozenList: self._list,
            dict: self._dict,
            FrozenDict: self._dict,
            tuple: lambda value, depth: {TAG: "tuple", "v": self._list(value, depth - 1)},
            set: self._set("set"),
            FrozenSet: self._set("set"),
            frozenset: self._set("frozenset"),
            deque: self._deque,
            OrderedDict: self._pairs("ordereddict"),
            Counter: self._pairs("counter"),
            defaultdict: self._defaultdict,
            Stored: self._stored,
            StoredEnum: self._stored_enum,
        }

    def write(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Return `value` as plain data of at most `depth` levels.

        Raises:
            Refusal: The value would not come back equal and of the same type.
        """
        kind = type(value)
        return (self._writers.get(kind) or self._learn(kind))(value, depth)

    def _learn(self, cls: type) -> Writer:
        """Work out how a class is written; a refusal is remembered by nobody, so a mended schema is seen."""
        if is_url(cls):
            return self._writers.setdefault(cls, _leaf(url_out))
        kind = kind_of(cls)
        if kind is None or not self._classes.reaches(cls):
            raise Refusal(_why_not(cls))
        name = self._classes.name(cls)
        writer: Writer
        if kind == "enum":
            writer = _leaf(_flag_out(name) if issubclass(cls, enum.Flag) else _enum_out(name))
        elif kind == "model":
            writer = self._model(cls, name)
        elif kind == "dataclass":
            writer = self._dataclass(cls, name)
        else:
            writer = self._namedtuple(name)
        self._writers[cls] = writer
        return writer

    def _list(self, value: Iterable[Any], depth: int) -> list[Any]:
        depth = _deeper(depth, 1)
        out: list[Any] = []
        writers = self._writers
        try:
            for item in value:
                kind = type(item)
                out.append((writers.get(kind) or self._learn(kind))(item, depth))
        except Refusal as refusal:
            refusal.inside(len(out), value)
            raise
        return out

    def _fields(self, pairs: Iterable[tuple[str, Any]], owner: Any, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        writers = self._writers
        key = ""
        try:
            for key, item in pairs:
                kind = type(item)
                out[key] = (writers.get(kind) or self._learn(kind))(item, depth)
        except Refusal as refusal:
            refusal.inside(key, owner)
            raise
        return out

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        for key in value:
            if type(key) is not str or key == TAG or type(str_out(key)) is not str:
                return self._tagged_pairs("dict", value, depth)
        return self._fields(value.items(), value, _deeper(depth, 1))

    def _tagged_pairs(self, tag: str, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        depth = _deeper(depth, 3)
        out: list[Any] = []
        for key, item in value.items():
            try:
                out.append([self.write(key, depth), self.write(item, depth)])
            except Refusal as refusal:
                refusal.inside(key, value)
                raise
        return {TAG: tag, "v": out}

    def _pairs(self, tag: str) -> Writer:
        return lambda value, depth: self._tagged_pairs(tag, value, depth)

    def _defaultdict(self, value: defaultdict[Any, Any], depth: int) -> dict[str, Any]:
        factory = value.default_factory
        form = self._tagged_pairs("defaultdict", value, depth)
        if factory is not None:
            name = getattr(factory, "__name__", "")
            if FACTORIES.get(name) is not factory:
                raise Refusal(
                    f"a defaultdict with the factory {name or factory!r}; only builtin types are kept"
                )
            form["factory"] = name
        return form

    def _set(self, tag: str) -> Writer:
        """The order of a set differs from process to process; its stored form does not."""

        def write(value: Any, depth: int) -> dict[str, Any]:
            items = self._list(value, depth - 1)
            kinds = set(map(type, items))
            items.sort(key=None if kinds == {str} or kinds == {int} else to_json)
            return {TAG: tag, "v": items}

        return write

    def _deque(self, value: deque[Any], depth: int) -> dict[str, Any]:
        form: dict[str, Any] = {TAG: "deque", "v": self._list(value, depth - 1)}
        if value.maxlen is not None:
            form["max"] = value.maxlen
        return form

    def _model(self, cls: type[BaseModel], name: str) -> Writer:
        names = tuple(cls.model_fields)
        every = frozenset(names)

        def write(value: Any, depth: int) -> dict[str, Any]:
            held = value.__dict__
            depth = _deeper(depth, 2)
            try:
                pairs = [(key, held[key]) for key in names]
            except KeyError as error:
                raise Refusal(
                    f"a {cls.__name__} without its field {error}; build it by its constructor"
                ) from None
            form = {TAG: "model", "of": name, "v": self._fields(pairs, value, depth)}
            was_set = value.__pydantic_fields_set__
            if was_set != every:
                form["set"] = [key for key in names if key in was_set]
            if value.__pydantic_extra__:
                form["extra"] = self._dict(value.__pydantic_extra__, depth)
            if value.__pydantic_private__:
                form["private"] = self._fields(value.__pydantic_private__.items(), value, depth)
            return form

        return write

    def _dataclass(self, cls: type, name: str) -> Writer:
        names = tuple(field.name for field in dataclasses.fields(cls))

        def write(value: Any, depth: int) -> dict[str, Any]:
            others = getattr(value, "__dict__", {}).keys() - names
            if others:
                raise Refusal(
                    f"a {cls.__name__} with attributes that are no fields: {', '.join(sorted(others))}"
                )
            try:
                pairs = [(key, getattr(value, key)) for key in names]
            except AttributeError as error:
                raise Refusal(f"a half-built {cls.__name__}: {error}") from None
            return {TAG: "dataclass", "of": name, "v": self._fields(pairs, value, _deeper(depth, 2))}

        return write

    def _namedtuple(self, name: str) -> Writer:
        def write(value: Any, depth: int) -> dict[str, Any]:
            pairs = zip(value._fields, value, strict=True)
            return {TAG: "namedtuple", "of": name, "v": self._fields(pairs, value, _deeper(depth, 2))}

        return write

    def _stored(self, value: Stored, depth: int) -> dict[str, Any]:
        fields = self._fields(value.items(), value, _deeper(depth, 2))
        return {TAG: value.kind, "of": value.of, "v": fields, **value.extras}

    def _stored_enum(self, value: StoredEnum, depth: int) -> dict[str, Any]:
        return {TAG: "enum", "of": value.of, "v": value.member}


def _leaf(write: Callable[[Any], Any]) -> Writer:
    return lambda value, depth: write(value)


def _deeper(depth: int, levels: int) -> int:
    if depth < levels:
        raise Refusal(f"nested deeper than {MAX_DEPTH} levels of plain data")
    return depth - levels


def _enum_out(name: str) -> Callable[[enum.Enum], Any]:
    return lambda value: {TAG: "enum", "of": name, "v": value._name_}


def _flag_out(name: str) -> Callable[[enum.Flag], Any]:
    return lambda value: {TAG: "enum", "of": name, "v": value._value_}


def _why_not(cls: type) -> str:
    label = f"{cls.__module__}.{cls.__qualname__}"
    if label.startswith("pydantic.types.Secret"):
        return f"a {cls.__name__} is never written down; mark the field Ephemeral and fetch the secret again"
    if cls.__module__.startswith("numpy"):
        return f"a numpy value of type {cls.__name__}; convert it with .item() or .tolist()"
    if kind_of(cls) is not None:
        return (
            f"a value of class {label}, which the schema does not mention; name it in the field's annotation"
        )
    return (
        f"a value of type {label}, which cannot be kept; use builtin types, models, dataclasses or enums, "
        "or mark the field Ephemeral"
    )
