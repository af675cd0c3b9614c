"""One JSON object in one file that processes share: read when it changed, replaced whole, under a lock."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock

from jianmu.errors import StorageError

__all__ = ["SharedJsonFile"]

_Signature = tuple[int, int, int]


class SharedJsonFile:
    """A JSON object on disk; the file is 0600, a folder made for it 0700.

    Args:
        path: The file; it need not exist.
        check: Raises when an object that was read is not one this program understands.
        lock_timeout: Seconds to wait for another process that is writing.
    """

    def __init__(self, path: Path, check: Callable[[dict[str, Any]], None], lock_timeout: float) -> None:
        self.path = path
        self._check = check
        self._lock_path = path.with_name(path.name + ".lock")
        self._lock_timeout = lock_timeout
        self._threads = threading.RLock()
        self._data: dict[str, Any] = {}
        self._signature: _Signature | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[dict[str, Any]]:
        """Give the newest object, not to be changed; other threads of this process wait meanwhile."""
        with self._threads:
            self._refresh()
            yield self._data

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Give the newest object to be changed in place; it is on disk when the block has ended."""
        with self._threads, self._locked():
            self._refresh()
            try:
                yield self._data
                self._replace()
            except BaseException:
                self.forget()
                raise

    def forget(self) -> None:
        """Drop what is in memory; the next use reads the file."""
        with self._threads:
            self._data, self._signature = {}, None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = filelock.FileLock(self._lock_path, timeout=self._lock_timeout, mode=0o600)
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise StorageError(
                f"{self.path} was locked by another process for {self._lock_timeout:g} s; nothing is written"
            ) from error
        except OSError as error:
            raise StorageError(f"{self._lock_path} cannot be made: {error.strerror or error}") from error
        try:
            yield
        finally:
            lock.release()

    def _refresh(self) -> None:
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                signature = (status.st_mtime_ns, status.st_size, status.st_ino)
                if signature == self._signature:
                    return
                raw = file.read()
        except FileNotFoundError:
            self._data, self._signature = {}, None
            return
        except OSError as error:
            raise StorageError(f"{self.path} cannot be read: {error.strerror or error}") from error
        self._data, self._signature = self._parse(raw), signature

    def _parse(self, raw: bytes) -> dict[str, Any]:
        try:
            data = json.loads(raw.decode("utf-8", "surrogatepass")) if raw.strip() else {}
        except ValueError as error:
            raise StorageError(
                f"{self.path} is no JSON ({error}); it was left as it is: mend it or move it away"
            ) from error
        if not isinstance(data, dict):
            raise StorageError(
                f"{self.path} holds a JSON {type(data).__name__}, not an object; it was left as it is"
            )
        self._check(data)
        return data

    def _replace(self) -> None:
        raw = json.dumps(self._data, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
        try:
            handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".", suffix=".tmp")  # made 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(raw)
                    file.flush()
                    os.fsync(file.fileno())
                    status = os.fstat(file.fileno())
                Path(temporary).replace(self.path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            _sync_folder(self.path.parent)
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror or error}; it is as it was"
            ) from error
        self._signature = (status.st_mtime_ns, status.st_size, status.st_ino)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows neither needs nor allows it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
