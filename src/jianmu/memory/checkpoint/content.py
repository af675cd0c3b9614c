"""The content of one step, in a form that later mutation cannot reach and the next step is compared with.

A `StateDump` is frozen already and kept as it is. Any other data is frozen here: dicts stay dicts, lists
become their JSON text, so that "the same list with more items" is one comparison of bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, from_json, to_json

from jianmu.codec.dump import StateDump, changes_json, split_json
from jianmu.errors import EncodeError

__all__ = ["Content", "from_text", "to_text"]

_MAX_DEPTH = 500  # what both JSON readers take, however deep the stack already is
_LARGEST_INT_BITS = 14_000  # Python's JSON refuses to read ints of more than 4,300 digits
_PART_BYTES = 2**16  # what a process allocates without asking the system for new pages each time
_SCALARS = frozenset({str, int, float, bool, type(None)})
_SHORT = _SCALARS - {int}

Path = tuple[str | int, ...]


class _ListText(NamedTuple):
    text: bytes
    length: int


class Content:
    """What one step holds besides its number.

    Args:
        state: The state dump.
        tree: ``{node id: Status name}`` or None.
        metadata: The runner's own data.
        before: The content of the step before, if known; what is equal to it is not searched again.

    Raises:
        EncodeError: A value that JSON would alter or cannot hold; it names the place.
    """

    def __init__(
        self,
        state: Mapping[str, Any],
        tree: Mapping[str, str] | None,
        metadata: Mapping[str, Any] | None,
        before: Content | None = None,
    ) -> None:
        known: dict[str, Any] = before._rest if before else {"tree": None, "runtime_metadata": None}
        try:
            self._state: Any = state
            if not isinstance(state, StateDump):
                old = before._state if before and not isinstance(before._state, StateDump) else None
                self._state = _frozen(dict(state), "state", old)
            tree = None if tree is None else dict(tree)
            self._rest: dict[str, Any] = {
                "tree": _frozen(tree, "tree", known["tree"]),
                "runtime_metadata": _frozen(
                    dict(metadata or {}), "runtime_metadata", known["runtime_metadata"]
                ),
            }
        except RecursionError as error:
            raise EncodeError("is nested too deeply to be stored as JSON") from error

    def snapshot(self) -> list[bytes]:
        """Return the whole as JSON text: ``{"state": ..., "tree": ..., "runtime_metadata": ...}``.

        The long lists of a `StateDump` are empty there and follow as the texts of lists of changes.
        """
        lists: list[bytes] = []
        if isinstance(self._state, StateDump):
            text, lists = split_json(self._state, ["state"], size=_PART_BYTES)
        else:
            text = _text(self._state)
        return [b'{"state":%b,%b' % (text, _text(self._rest)[1:]), *lists]

    def changes_from(self, before: Content) -> bytes:
        """Return the changes since `before` as the JSON text of a list for `apply_changes`."""
        out: list[bytes] = []
        if isinstance(self._state, StateDump) and isinstance(before._state, StateDump):
            out.extend(changes_json(before._state, self._state, ["state"]))
        else:
            old, new = before._plain_state(), self._plain_state()
            if not _diff_dict(old, new, ("state",), out):
                out.append(_change("set", ("state",), new))
        _diff_dict(before._rest, self._rest, (), out)
        return b"[%b]" % b",".join(out)

    def _plain_state(self) -> Any:
        if isinstance(self._state, StateDump):
            return _frozen(self._state.copy(), "state", None)
        return self._state


def to_text(value: Any) -> bytes:
    """Return plain data as compact JSON; half a surrogate pair is written as an escape."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        try:
            return json.dumps(value, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise EncodeError(f"cannot be stored as JSON: {error}") from error
    except ValueError as error:  # a list that contains itself
        raise EncodeError(f"cannot be stored as JSON: {error}") from error


def from_text(text: bytes) -> Any:
    """Return the data that `to_text` was given.

    Raises:
        ValueError: The text is no JSON.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        return json.loads(text)  # deeper, or with half a surrogate pair


def _frozen(value: Any, name: str, known: Any) -> Any:
    """Return the frozen form of `value`; `known` is the frozen form that it had at the step before."""
    try:
        return _freeze(value, known, 1)
    except EncodeError as error:
        _check(value, (name,))  # names the place, if it is one value that cannot be stored
        raise EncodeError(error.reason, (name,)) from error


def _freeze(value: Any, known: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _SHORT or (kind is int and value.bit_length() <= _LARGEST_INT_BITS):
        return value
    if depth <= _MAX_DEPTH:
        if isinstance(value, dict):
            return _freeze_dict(value, known if isinstance(known, dict) else {}, depth + 1)
        if isinstance(value, list):
            return _freeze_list(value, known, depth)
    raise EncodeError("cannot be stored")


def _freeze_dict(value: dict[Any, Any], known: dict[str, Any], depth: int) -> dict[str, Any]:
    frozen: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise EncodeError("cannot be stored")
        frozen[key] = item if type(item) in _SHORT else _freeze(item, known.get(key), depth)
    return frozen


def _freeze_list(value: list[Any], known: Any, depth: int) -> _ListText:
    text = to_text(value)
    start = known.length if isinstance(known, _ListText) and _grew(known.text, text) else 0
    above = (0,) * depth
    for item in value[start:]:
        if type(item) not in _SHORT:
            _check(item, above)
    return _ListText(text, len(value))


def _grew(old: bytes, new: bytes) -> bool:
    """Whether the list of text `new` is the list of text `old`, perhaps with more items."""
    end = len(old) - 1
    return new.startswith(old[:-1]) and (end == 1 or new[end : end + 1] in (b",", b"]"))


def _check(value: Any, path: Path) -> None:
    kind = type(value)
    if kind is int:
        if value.bit_length() > _LARGEST_INT_BITS:
            raise EncodeError("an int of more than 4,200 digits cannot be read again", path)
    elif kind in _SCALARS:
        return
    elif len(path) > _MAX_DEPTH:
        raise EncodeError(f"is nested deeper than {_MAX_DEPTH} levels", path[:5])
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_key(key, path)
            _check(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, (*path, index))
    else:
        raise EncodeError(
            f"is of type {kind.__name__}, which JSON would alter or cannot hold; keep it in a typed "
            "StateManager, or turn it into str, int, float, bool, None, list or dict",
            path,
        )


def _check_key(key: Any, path: Path) -> None:
    if type(key) is not str:
        raise EncodeError(f"has a key of type {type(key).__name__}, and JSON knows only str", path)


def _text(frozen: Any) -> bytes:
    if isinstance(frozen, _ListText):
        return frozen.text
    if isinstance(frozen, dict) and not _SCALARS.issuperset(map(type, frozen.values())):
        return b"{%b}" % b",".join(b"%b:%b" % (to_text(key), _text(item)) for key, item in frozen.items())
    return to_text(frozen)


def _diff(old: Any, new: Any, path: Path, out: list[bytes]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        if _diff_dict(old, new, path, out):
            return
    elif isinstance(old, _ListText) and isinstance(new, _ListText):
        if old.text == new.text:
            return
        if _grew(old.text, new.text):
            tail = new.text[len(old.text) - 1 :].removeprefix(b",")
            out.append(b'["append",%b,[%b]' % (to_text(list(path)), tail))  # the tail closes its list
            return
    out.append(_change("set", path, new))


def _diff_dict(old: dict[str, Any], new: dict[str, Any], path: Path, out: list[bytes]) -> bool:
    """Add the changes between two dicts; return False if only the whole can keep the order of its keys."""
    if list(old) != list(new):
        kept = [key for key in old if key in new]
        if list(new)[: len(kept)] != kept:
            return False
        out.extend(_change("del", (*path, key)) for key in old if key not in new)
    for key, value in new.items():
        if key not in old:
            out.append(_change("set", (*path, key), value))
        elif not _same(old[key], value):
            _diff(old[key], value, (*path, key), out)
    return True


def _same(old: Any, new: Any) -> bool:
    """Whether two scalars are the same, also in kind and in the sign of a zero."""
    if old is new:
        return True
    kind = type(new)
    return kind in _SCALARS and kind is type(old) and old == new and (old != 0 or str(old) == str(new))


def _change(op: str, path: Path, *value: Any) -> bytes:
    head = b'["%b",%b' % (op.encode(), to_text(list(path)))
    return b"%b,%b]" % (head, _text(value[0])) if value else head + b"]"
