"""Locks between processes that die with their holder: a file that the operating system holds for us."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["OsLock", "hold"]


class OsLock:
    """The right to a lock file. The file itself is never removed: to remove one is to let two holders in.

    Args:
        path: The lock file, made 0600 when first held.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path, mode=0o600, thread_local=False, poll_interval=0.002)
        self._inode: int | None = None

    def take(self, timeout: float = 0.0) -> bool:
        """Wait up to `timeout` seconds for the lock, and return whether we hold it."""
        try:
            self._lock.acquire(timeout=timeout)
        except Timeout:
            return False
        self._inode = self._inode_there()
        return True

    @property
    def held(self) -> bool:
        """Whether this object holds it, and the file is still the one at its path."""
        return self._lock.is_locked and self._inode is not None and self._inode_there() == self._inode

    def release(self) -> None:
        """Let go; safe to call twice."""
        self._lock.release(force=True)

    def _inode_there(self) -> int | None:
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def hold(path: Path, timeout: float) -> Iterator[bool]:
    """Hold the lock file at `path` for a block; the value says whether it could be had within `timeout`."""
    lock = OsLock(path)
    taken = lock.take(timeout)
    try:
        yield taken
    finally:
        if taken:
            lock.release()
