"""An envelope as JSON text, or an error that names what would not come back the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jianmu.codec.dump import StateDump, dump_json
from jianmu.errors import EncodeError

__all__ = ["encode_plain"]

_LARGEST_INT_BITS = 14_000  # Python's JSON refuses to read ints of more than 4,300 digits
_ATOMS = frozenset({str, int, float, bool, type(None)})


def encode_plain(record: Mapping[str, Any]) -> bytes:
    """Return `record` as compact UTF-8 JSON; the text that a `StateDump` in it holds is not made again.

    Raises:
        EncodeError: A value that JSON would alter (a tuple, a set, a key that is no str, an enum) or cannot
            hold; it names the place. A `StateDump` is plain by its making and is not searched.
    """
    try:
        for key, value in record.items():
            _check(value, (key,))
        return dump_json(record)
    except EncodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise EncodeError(f"cannot be stored as JSON: {error}") from error


def _check(value: Any, path: tuple[str | int, ...]) -> None:
    kind = type(value)
    if kind is int:
        if value.bit_length() > _LARGEST_INT_BITS:
            raise EncodeError("an int of more than 4,200 digits cannot be read again", path)
    elif kind in _ATOMS or kind is StateDump:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise EncodeError(f"has a key of type {type(key).__name__}, and JSON knows only str", path)
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
