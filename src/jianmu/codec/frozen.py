"""Containers that can be read like their builtin parents and never changed.

They equal what they were made from, pass `isinstance`, pydantic and `json`, and pickle or deep-copy into the
builtin type, so that a copy is free to change.
"""

from __future__ import annotations

from typing import Any, NoReturn, SupportsIndex, TypeVar

__all__ = ["FrozenDict", "FrozenList", "FrozenSet"]

K = TypeVar("K")
V = TypeVar("V")


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    kind = type(self).__mro__[-2].__name__
    raise TypeError(
        f"this {kind} belongs to the state and is read-only; change the state with update(), "
        f"or work on a copy: {kind}(value)"
    )


class FrozenList(list[V]):
    """A list that refuses every change."""

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    __hash__ = None

    def copy(self) -> list[V]:
        """Return a builtin list."""
        return list(self)

    def __copy__(self) -> list[V]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[V]:
        from copy import deepcopy

        return deepcopy(list(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return list, (list(self),)


class FrozenDict(dict[K, V]):
    """A dict that refuses every change."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse
    __hash__ = None

    def copy(self) -> dict[K, V]:
        """Return a builtin dict."""
        return dict(self)

    def __copy__(self) -> dict[K, V]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[K, V]:
        from copy import deepcopy

        return deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return dict, (dict(self),)


class FrozenSet(set[V]):
    """A set that refuses every change; it is a `set`, where `frozenset` is not."""

    add = discard = remove = pop = clear = update = _refuse
    difference_update = intersection_update = symmetric_difference_update = _refuse
    __ior__ = __iand__ = __isub__ = __ixor__ = _refuse
    __hash__ = None

    def __repr__(self) -> str:
        return repr(set(self))

    def copy(self) -> set[V]:
        """Return a builtin set."""
        return set(self)

    def __copy__(self) -> set[V]:
        return set(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> set[V]:
        from copy import deepcopy

        return deepcopy(set(self), memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return set, (set(self),)
