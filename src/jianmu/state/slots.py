"""One committed field each: its value, what a reader gets of it, and its JSON text once it was saved."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from jianmu.codec.fragments import Fragment, ListFragment, ListText
from jianmu.codec.frozen import FrozenList
from jianmu.codec.refusal import Path, Refusal
from jianmu.errors import StateValidationError
from jianmu.state.lending import CopyingList, lend, shallow
from jianmu.state.ownership import FIXED, FLAT, Owner
from jianmu.state.schema import FieldRule

__all__ = ["ListSlot", "Slot", "ValueSlot", "make_slot", "take_items"]

Encode = Callable[[Any, Path], Any]


class ValueSlot:
    """A field that is replaced as a whole; the slot itself never changes.

    Args:
        value: The state's own value.
        level: FIXED if readers may share it, FLAT if a copy of the outermost layer is enough for them.
        text: Its JSON text, if that is known.
    """

    __slots__ = ("_fragment", "_level", "value")

    def __init__(self, value: Any, level: int, text: bytes | None = None) -> None:
        self.value = value
        self._level = level
        self._fragment = None if text is None else Fragment(text)

    def read(self) -> Any:
        """Return the value, or a copy where it can change."""
        if self._level == FIXED:
            return self.value
        return shallow(self.value) if self._level == FLAT else lend(self.value)

    def freeze(self, name: str, encode: Encode) -> Fragment:
        """Return the JSON text; it is made once."""
        if self._fragment is None:
            self._fragment = Fragment(to_json(encode(self.value, (name,))))
        return self._fragment


class ListSlot:
    """A field that is a growing list.

    The list is read-only and readers get it as it is. When it must grow while a reader still holds it, the
    state goes on with a copy of the list (not of its items), so that no reader ever sees it grow.

    Args:
        items: The state's own items.
        fixed: Whether nothing in any of them can change.
        texts: The JSON texts of the items, if those are known.
    """

    __slots__ = ("_frozen", "_list", "_lone", "_text")

    def __init__(self, items: list[Any], fixed: bool, texts: list[bytes] | None = None) -> None:
        self._list: FrozenList[Any] = FrozenList(items) if fixed else CopyingList(items)
        self._text = ListText()
        self._text.extend(texts or ())
        self._frozen: ListFragment | None = None
        self._lone = self._references()

    def _references(self) -> int:
        """How many hold the list; the same look at a list that nobody else holds gives `_lone`."""
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

    def extended(self, items: list[Any], fixed: bool) -> FrozenList[Any]:
        """Return what `read` would after `extend`, for a preview."""
        kind = FrozenList if fixed and self.fixed else CopyingList
        return kind([*list.__iter__(self._list), *items])

    def extend(self, items: list[Any], fixed: bool) -> None:
        """Add items to the end; costs the items, unless a reader holds the list."""
        if self.fixed and not fixed:
            self._list = CopyingList(self._list)
        elif self._references() > self._lone:
            self._list = type(self._list)(list.__iter__(self._list))
        list.extend(self._list, items)

    def freeze(self, name: str, encode: Encode) -> ListFragment:
        """Return the JSON text; only items that were not saved before are encoded."""
        start = self._text.length
        if self._frozen is None or len(self._list) > start:
            new = list.__getitem__(self._list, slice(start, None))
            self._text.extend([to_json(encode(item, (name, at))) for at, item in enumerate(new, start)])
            self._frozen = self._text.freeze()
        return self._frozen


Slot = ValueSlot | ListSlot

_UNKNOWN = object()


def make_slot(name: str, rule: FieldRule | None, value: Any, owner: Owner, plain: Any = _UNKNOWN) -> Slot:
    """Take a validated value into a slot of the right kind.

    Args:
        name: The field.
        rule: Its rule; None for an extra field.
        value: The value.
        owner: Takes it.
        plain: Its plain data, if it was just read from there.

    Raises:
        StateValidationError: A model in the value holds what its own class refuses.
    """
    if rule is not None and rule.ephemeral:
        return ValueSlot(value, FIXED)
    if rule is not None and rule.grows and type(value) is list:
        items, fixed = take_items(name, value, owner)
        return ListSlot(items, fixed, list(map(to_json, plain)) if type(plain) is list else None)
    try:
        own, level = owner.take(value)
    except Refusal as refusal:
        raise _refused(refusal, (name,)) from None
    return ValueSlot(own, level, None if plain is _UNKNOWN else to_json(plain))


def take_items(name: str, items: list[Any], owner: Owner, start: int = 0) -> tuple[list[Any], bool]:
    """Take the items of a growing list; `start` is the place of the first one, for an error.

    Raises:
        StateValidationError: A model in an item holds what its own class refuses.
    """
    own: list[Any] = []
    all_fixed = True
    try:
        for item in items:
            mine, level = owner.take(item)
            own.append(mine)
            all_fixed = all_fixed and level == FIXED
    except Refusal as refusal:
        raise _refused(refusal, (name, start + len(own))) from None
    return own, all_fixed


def _refused(refusal: Refusal, start: Path) -> StateValidationError:
    reason, path = refusal.trace(start)
    return StateValidationError(f"{'.'.join(map(str, path))}: {reason}")
