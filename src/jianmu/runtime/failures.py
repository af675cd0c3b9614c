"""Exceptions of leaves, as text that a checkpoint can keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jianmu.errors import StoredLeafError

__all__ = ["dump_failures", "load_failures", "message_of"]

_LONGEST = 500
"""Characters of a message that are saved: some libraries put whole answers of a server into theirs."""

_MOST = 20
"""How many are saved, the latest: every step has them all."""


def message_of(error: BaseException) -> str:
    """Return what `str(error)` says as text that UTF-8 can hold; an error that fails even at that says so."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception as broken:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"(its message cannot be read: {type(broken).__name__})"


def dump_failures(errors: Mapping[str, BaseException]) -> list[dict[str, str]]:
    """Return the latest of the errors by path as plain data: type and message, no traceback and no cause."""
    return [
        {"path": path, "error": _kind(error), "message": _storable(message_of(error))}
        if not isinstance(error, StoredLeafError)
        else {"path": path, "error": error.kind, "message": error.message}
        for path, error in list(errors.items())[-_MOST:]
    ]


def load_failures(saved: Iterable[Mapping[str, Any]]) -> dict[str, BaseException]:
    """Return what `dump_failures` gave as exceptions by path; the classes themselves are not looked up."""
    return {
        str(each["path"]): StoredLeafError(str(each["error"]), str(each["message"]), str(each["path"]))
        for each in saved
    }


def _kind(error: BaseException) -> str:
    return type(error).__name__


def _storable(text: str) -> str:
    """Without NUL, which some back ends refuse."""
    return text[:_LONGEST].replace("\0", "\\0")
