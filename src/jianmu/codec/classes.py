"""Which classes may be rebuilt, and under what name each is stored.

Reachable are the enum, model, dataclass and named-tuple classes that the given annotations lead to, and every
loaded subclass of those. Nothing is ever imported by a name found in stored data.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from jianmu.codec.refusal import Refusal

__all__ = ["ClassTable", "is_namedtuple", "kind_of"]


def is_namedtuple(cls: type) -> bool:
    """Whether `cls` was made by `typing.NamedTuple` or `collections.namedtuple`."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


def kind_of(cls: type) -> str | None:
    """Return the tag under which instances of `cls` are stored, or None if it is none of our kinds."""
    if issubclass(cls, enum.Enum):
        return "enum"
    if issubclass(cls, BaseModel):
        return "model"
    if is_namedtuple(cls):
        return "namedtuple"
    if dataclasses.is_dataclass(cls) and not issubclass(
        cls, list | dict | set | tuple | str | int | BaseException
    ):
        return "dataclass"
    return None


class ClassTable:
    """The classes that one codec may rebuild.

    Args:
        types: Annotations to start from.
    """

    def __init__(self, types: tuple[Any, ...]) -> None:
        self.roots: dict[type, None] = {}
        seen: set[int] = set()
        keep: list[Any] = []  # an id is only good while its object lives
        stack = list(types)
        while stack:
            annotation = stack.pop()
            if id(annotation) in seen:
                continue
            seen.add(id(annotation))
            keep.append(annotation)
            if isinstance(annotation, type) and _is_of_interest(annotation):
                self.roots[annotation] = None
            stack.extend(_leads_to(annotation))

    def reaches(self, cls: type) -> bool:
        """Whether `cls` is reachable or a subclass of a reachable class."""
        return any(base in self.roots for base in cls.__mro__)

    def name(self, cls: type) -> str:
        """Return the stored name of `cls`, ``module:qualname``.

        Raises:
            Refusal: The class is not reachable, or its name would lead to another one.
        """
        name = f"{cls.__module__}:{cls.__qualname__}"
        if not self.reaches(cls):
            raise Refusal(
                f"a value of class {cls.__qualname__}, which the schema does not mention; "
                "name the class in the field's annotation"
            )
        if self.find(name, kind_of(cls)) is not cls:
            raise Refusal(f"two loaded classes are called {name}; give them different names")
        return name

    def find(self, name: str, kind: str | None) -> type:
        """Return the class stored as `name`: by module and name, else by its name alone if only one has it.

        Raises:
            Refusal: No such class is reachable, or several are.
        """
        module, _, qualname = name.rpartition(":")
        named = [cls for cls in self._all() if cls.__qualname__ == qualname and kind_of(cls) == kind]
        found = [cls for cls in named if cls.__module__ == module] or named
        if len(found) > 1:
            found = [cls for cls in found if cls in self.roots] or found
        if len(found) > 1:
            found = [cls for cls in found if _is_current(cls)] or found
        if len(found) == 1:
            return found[0]
        if found:
            raise Refusal(f"{len(found)} loaded classes are called {name}; give them different names")
        raise Refusal(
            f"the {kind} {name} is not among the classes that the schema mentions; "
            "it was renamed or removed, or its module is not loaded yet"
        )

    def _all(self) -> Iterator[type]:
        stack, seen = list(self.roots), set[type]()
        while stack:
            cls = stack.pop()
            if cls not in seen:
                seen.add(cls)
                yield cls
                stack.extend(type.__subclasses__(cls))


def _is_of_interest(cls: type) -> bool:
    """Whether a class may be rebuilt or be the base of one; builtin ones have subclasses all over."""
    return kind_of(cls) is not None or cls.__module__ not in {
        "builtins",
        "typing",
        "collections",
        "datetime",
        "abc",
    }


def _is_current(cls: type) -> bool:
    """Whether its module (if loaded) still holds this very class under its name; a redefined one is stale."""
    value: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        value = getattr(value, part, None)
    return value is cls


def _leads_to(annotation: Any) -> list[Any]:
    found = list(typing.get_args(annotation))
    inner = (
        getattr(annotation, name, None) for name in ("__origin__", "__supertype__", "__bound__", "__value__")
    )
    found.extend(item for item in inner if item is not None)
    found.extend(getattr(annotation, "__constraints__", ()))
    if isinstance(annotation, type):
        if issubclass(annotation, BaseModel):
            found.extend(field.annotation for field in annotation.model_fields.values())
        elif (
            dataclasses.is_dataclass(annotation)
            or is_namedtuple(annotation)
            or typing.is_typeddict(annotation)
        ):
            found.extend(_hints(annotation).values())
    return found


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):  # a forward reference to something that is not there (yet)
        return {}
