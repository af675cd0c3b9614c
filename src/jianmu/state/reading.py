"""Reads of the state that tell their reader that assigning to them changes nothing."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel

from jianmu.errors import StateError

__all__ = ["refuse_assignment"]

S = TypeVar("S", bound=BaseModel)


def refuse_assignment(model: S, remedy: str) -> S:
    """Let assigning to a field of `model` raise; copies of it are free again.

    pydantic assigns by ``model.__dict__[name] = value``, so that a dict that refuses is enough: class,
    equality, dumps and copies stay those of the schema. A schema with ``validate_assignment=True`` swaps the
    whole dict instead, and is not guarded; nor is what a field holds.

    Args:
        model: A model that nobody else holds.
        remedy: What to do instead, with ``{name}`` for the field.

    Returns:
        `model`.
    """
    kind = type(model).__qualname__
    object.__setattr__(model, "__dict__", _Fields(model.__dict__, kind, remedy))
    if model.__pydantic_extra__ is not None:
        extra = _Extra(model.__pydantic_extra__, kind, remedy)
        object.__setattr__(model, "__pydantic_extra__", extra)
    return model


class _Refusing(dict[str, Any]):
    """A model's values; every copy is a plain dict."""

    __slots__ = ("_kind", "_remedy")

    def __init__(self, values: dict[str, Any], kind: str, remedy: str) -> None:
        super().__init__(values)
        self._kind = kind
        self._remedy = remedy

    def _refuse(self, name: str) -> NoReturn:
        remedy = self._remedy.replace("{name}", name)
        raise StateError(f"{self._kind}.{name} was assigned, which would change a copy alone; {remedy}")

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: Any) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class _Fields(_Refusing):
    """The fields: what is there stays; a cached property may still be added."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self._refuse(name)
        super().__setitem__(name, value)


class _Extra(_Refusing):
    """The extra fields: every new name would be one more of them."""

    def __setitem__(self, name: str, value: Any) -> None:
        self._refuse(name)
