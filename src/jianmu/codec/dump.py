"""A state dump, and the two questions that a back end asks of any dump."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from copy import deepcopy
from typing import Any, NoReturn, SupportsIndex

from pydantic_core import to_json

from jianmu.codec.delta import Change, diff
from jianmu.codec.fragments import Fragment, ListFragment, parse

__all__ = ["StateDump", "changes_between", "changes_json", "dump_json", "split_json"]


class StateDump(dict[str, Any]):
    """What `StateManager.dump_checkpoint` returns: a dict of plain JSON data that never changes.

    It holds the JSON text of each field, shared with the dumps before and after it, and builds the plain data
    of a field when that is first read; what it hands out is its own and touches neither the state nor another
    dump. A deep copy, a pickle and ``dict(dump)`` are builtin dicts.

    Args:
        parts: The fields; plain data, or fragments of text.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /) -> None:
        super().__init__(parts)
        self._parts: dict[str, Any] = {
            key: value for key, value in dict.items(self) if isinstance(value, Fragment | ListFragment)
        }

    @property
    def parts(self) -> Mapping[str, Fragment | ListFragment]:
        """The fields that are kept as text."""
        return self._parts

    def __getitem__(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        if isinstance(value, Fragment | ListFragment):
            value = value.plain()
            dict.__setitem__(self, key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the plain data of a field, or `default`."""
        return self[key] if dict.__contains__(self, key) else default

    def _read(self) -> dict[str, Any]:
        for key in self:
            self[key]
        return self

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override] # dict_items has no public name
        """Return the fields, each with its plain data."""
        return dict.items(self._read())

    def values(self) -> ValuesView[Any]:  # type: ignore[override] # nor has dict_values
        """Return the plain data of the fields."""
        return dict.values(self._read())

    def copy(self) -> dict[str, Any]:
        """Return a builtin dict of the same data."""
        return dict(dict.items(self._read()))

    def __iter__(self) -> Iterator[str]:  # also keeps dict(dump) off the path that skips __getitem__
        return dict.__iter__(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StateDump):
            other._read()
        return dict.__eq__(self._read(), other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __repr__(self) -> str:
        return dict.__repr__(self._read())

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        """Return a builtin dict with data of its own; text is parsed again, which is faster than copying."""
        fresh = {}
        for key in self:
            part = self._parts.get(key)
            fresh[key] = part.plain() if part is not None else deepcopy(dict.__getitem__(self, key), memo)
        return fresh

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return dict, (self.copy(),)

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a state dump never changes; work on a copy: dict(dump)")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the changes from `old` to `new`; costs what changed when both are dumps of one manager."""
    if not (isinstance(old, StateDump) and isinstance(new, StateDump)):
        return diff(old, new)
    return [parse(text) for text in changes_json(old, new, ())]


def changes_json(old: StateDump, new: StateDump, path: Sequence[str]) -> list[bytes]:
    """Return `changes_between` as JSON texts; what was appended to a list is text already.

    Args:
        old: The dump before.
        new: The dump after.
        path: Where the dumps stand in what the changes are applied to.
    """
    if list(old) != list(new):
        return [to_json([op, [*path, *place], *value]) for op, place, *value in diff(old, new)]
    texts: list[bytes] = []
    for key in new:
        before, after = old.parts.get(key), new.parts.get(key)
        if before is not None and before is after:
            continue
        if isinstance(before, ListFragment) and isinstance(after, ListFragment) and _grew(before, after):
            if after.length > before.length:
                place = to_json([*path, key])
                texts.append(b'["append",%b,[%b]]' % (place, after.text_from(before.length)))
            continue
        changes = diff({key: old[key]}, {key: new[key]})
        texts.extend(to_json([op, [*path, *place], *value]) for op, place, *value in changes)
    return texts


def _grew(before: ListFragment, after: ListFragment) -> bool:
    """Whether the one is the other, perhaps with more items."""
    return before.origin is after.origin and after.length >= before.length


def dump_json(dump: Mapping[str, Any]) -> bytes:
    """Return `dump` as compact UTF-8 JSON; what a manager's dump holds as text is joined, not encoded again.

    Args:
        dump: A dump, an envelope with a dump among its values, or any mapping of plain JSON data.
    """
    pieces: list[bytes] = []
    _write(dump, pieces)
    return b"".join(pieces)


def split_json(dump: StateDump, path: Sequence[str], *, size: int) -> tuple[bytes, list[bytes]]:
    """Return `dump` as JSON with its long lists empty, and the lists of changes that fill them.

    Args:
        dump: A dump.
        path: Where the dump will stand in what the changes are applied to.
        size: About how many bytes each of the changes takes; a shorter list stays where it is.

    Returns:
        The JSON text of an object, and the texts of lists of changes for `apply_changes`.
    """
    pieces: list[bytes] = []
    later: list[bytes] = []
    for key in dump:
        pieces.append(b"%b%b:" % (b"," if pieces else b"{", to_json(key)))
        part = dump.parts.get(key)
        chunks = list(part.chunks(size)) if isinstance(part, ListFragment) else []
        if len(chunks) > 1:
            place = to_json([*path, key])
            later.extend(b'[["append",%b,[%b]]]' % (place, chunk) for chunk in chunks)
            pieces.append(b"[]")
        elif part is not None:
            pieces.extend(part.pieces())
        else:
            _write(dump[key], pieces)
    return b"".join(pieces) + b"}" if pieces else b"{}", later


def _write(value: Any, pieces: list[bytes]) -> None:
    if not _holds_text(value):
        pieces.append(to_json(value))
        return
    parts: Mapping[str, Any] = value.parts if isinstance(value, StateDump) else {}
    separator = b"{"
    for key in value:
        pieces.append(b"%b%b:" % (separator, to_json(key)))
        separator = b","
        if key in parts:
            pieces.extend(parts[key].pieces())
        else:
            _write(value[key], pieces)
    pieces.append(b"}")


def _holds_text(value: Any) -> bool:
    if isinstance(value, StateDump):
        return bool(value.parts)
    return isinstance(value, Mapping) and any(isinstance(item, StateDump) for item in value.values())
