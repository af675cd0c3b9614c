"""One committed field each: its value, what a reader gets of it, and its JSON text once it was saved."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from jianmu.codec.fragments import Fragment, ListFragment, ListText
from jianmu.codec.frozen import FrozenList
from jianmu.state.ownership import CopyingList, lend

__all__ = ["ListSlot", "ValueSlot"]

Encode = Callable[[Any], Any]


class ValueSlot:
    """A field that is replaced as a whole; the slot itself never changes.

    Args:
        value: The state's own value.
        fixed: Whether nothing in it can change, so that readers may share it.
    """

    __slots__ = ("_fragment", "fixed", "value")

    def __init__(self, value: Any, fixed: bool) -> None:
        self.value = value
        self.fixed = fixed
        self._fragment: Fragment | None = None

    def read(self) -> Any:
        """Return the value, or a copy where it can change."""
        return self.value if self.fixed else lend(self.value)

    def freeze(self, encode: Encode) -> Fragment:
        """Return the JSON text; it is made once."""
        if self._fragment is None:
            self._fragment = Fragment(to_json(encode(self.value)))
        return self._fragment


class ListSlot:
    """A field that is a growing list.

    The list is read-only and readers get it as it is. When it must grow while a reader still holds it, the
    state goes on with a copy of the list (not of its items), so that no reader ever sees it grow.

    Args:
        items: The state's own items.
        fixed: Whether nothing in any of them can change.
    """

    __slots__ = ("_list", "_lone", "_text")

    def __init__(self, items: list[Any], fixed: bool) -> None:
        self._list: FrozenList[Any] = FrozenList(items) if fixed else CopyingList(items)
        self._text = ListText()
        self._lone = self._references()

    def _references(self) -> int:
        return sys.getrefcount(self._list)

    @property
    def value(self) -> FrozenList[Any]:
        """The list itself, for those who only look."""
        return self._list

    @property
    def fixed(self) -> bool:
        """Whether nothing in any item can change."""
        return not isinstance(self._list, CopyingList)

    def read(self) -> FrozenList[Any]:
        """Return the read-only list."""
        return self._list

    def extend(self, items: list[Any], fixed: bool) -> None:
        """Add items to the end; costs the items, unless a reader holds the list."""
        if self.fixed and not fixed:
            self._list = CopyingList(self._list)
        elif self._references() > self._lone:
            self._list = type(self._list)(list.__iter__(self._list))
        list.extend(self._list, items)

    def freeze(self, encode_items: Callable[[list[Any], int], list[Any]]) -> ListFragment:
        """Return the JSON text; only items that were not saved before are encoded."""
        start = self._text.length
        new = list.__getitem__(self._list, slice(start, None))
        if new:
            self._text.extend([to_json(item) for item in encode_items(new, start)])
        return self._text.freeze()
