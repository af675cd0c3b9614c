"""Files that are whole or not there: private folders, durable writes, replacement in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "WRITE_FLAGS",
    "make_private_folder",
    "remove_file",
    "replace_file",
    "sync_file",
    "sync_folder",
    "temporary_of",
    "write_all",
    "write_atomically",
]

WRITE_FLAGS = (
    os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
)
"""How a file is opened for writing: as bytes on Windows too, and never inherited by a child."""


def make_private_folder(folder: Path) -> None:
    """Make `folder` and what is missing above it, each 0700 and durable; an existing one stays as it is."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
        sync_folder(each.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however few the system takes at a time.

    Raises:
        OSError: The disk refused; some bytes may have been written.
    """
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written <= 0:
            raise OSError(f"the system took none of {len(rest)} bytes")
        rest = rest[written:]


def sync_file(descriptor: int) -> None:
    """Return when the file's bytes are on the disk."""
    if sys.platform == "darwin":
        import fcntl

        # fsync(2) on macOS leaves the bytes in the drive's own cache.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Return when the folder's names are on the disk; Windows keeps them by itself."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no folders
                raise
        finally:
            os.close(descriptor)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Put `pieces` in the place of what is at `path`, durably and in one step; 0600.

    A reader sees the old bytes or the new ones. After an error or a crash the old ones are still there; a
    crash may leave the file that `temporary_of` names, which the next call replaces. Callers hold a lock.

    Raises:
        OSError: The disk refused.
    """
    temporary = temporary_of(path)
    descriptor = os.open(temporary, WRITE_FLAGS | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        try:
            for piece in pieces:
                write_all(descriptor, piece)
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        replace_file(temporary, path)
    except BaseException:  # an interruption too must leave no litter
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def temporary_of(path: Path) -> Path:
    """Return where `write_atomically` writes before it renames."""
    return path.with_name(f"{path.name}.tmp")


def replace_file(source: Path, target: Path) -> None:
    """Rename over what is there; on Windows, wait up to a second for readers to let go of it."""
    for wait in _waits():
        try:
            source.replace(target)
        except PermissionError:
            if wait is None:
                raise
            time.sleep(wait)
        else:
            return


def remove_file(path: Path) -> bool:
    """Remove a file and return whether it was there; on Windows, wait up to a second for its readers."""
    for wait in _waits():
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except PermissionError:
            if wait is None:
                raise
            time.sleep(wait)
        else:
            return True
    raise AssertionError("the last wait is None")


def _waits() -> tuple[float | None, ...]:
    return (*[0.02] * 50, None) if sys.platform == "win32" else (None,)
