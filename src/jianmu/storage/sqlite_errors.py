"""What SQLite's errors mean, in our words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from jianmu.errors import StorageError

__all__ = ["is_busy", "is_damage", "translated"]

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextmanager
def translated(name: object, timeout: float) -> Iterator[None]:
    """Turn what is raised by SQLite about the file `name` into a StorageError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(_explain(error, name, timeout)) from error
    except UnicodeDecodeError as error:  # sqlite3 cannot decode a message that quotes damaged bytes
        raise StorageError(f"{name} is damaged ({error.reason})") from error
    except OSError as error:
        raise StorageError(f"{name} cannot be opened: {error.strerror or error}") from error


def is_damage(error: BaseException | None) -> bool:
    """Return whether a StorageError means that the file itself is damaged."""
    cause = error.__cause__ if isinstance(error, StorageError) else error
    return _code(error) in _DAMAGE or isinstance(cause, UnicodeDecodeError)


def is_busy(error: BaseException | None) -> bool:
    """Return whether an error means that another process held the lock."""
    return _code(error) in _BUSY


def _code(error: BaseException | None) -> int:
    cause = error.__cause__ if isinstance(error, StorageError) else error
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF


def _explain(error: sqlite3.Error, name: object, timeout: float) -> str:
    code = _code(error)
    if code in _BUSY:
        return f"{name} was locked by another process for more than {timeout:g} s ({error})"
    if code == sqlite3.SQLITE_FULL:
        return f"no space left for {name}; free some and try again ({error})"
    if code in _DAMAGE:
        return f"{name} is damaged or no SQLite file ({error})"
    return f"{name}: {error}"
