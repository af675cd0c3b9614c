"""One JSON object in one file that processes share: read when it changed, replaced whole, under a lock."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jianmu.errors import StorageError
from jianmu.storage.atomic import make_private_folder, write_atomically
from jianmu.storage.locks import hold

__all__ = ["SharedJsonFile"]

_REVISION = "~revision"
_Signature = tuple[int, int, int, bytes]


class SharedJsonFile:
    """A JSON object on disk; the file is 0600, a folder made for it 0700.

    Its first keys are those of `header` and a counter of writes, by which a changed file is known even where
    the clock of the file system is coarse.

    Args:
        path: The file; it need not exist.
        header: Keys that every written file begins with.
        check: Raises when an object that was read is not one this program understands.
        lock_timeout: Seconds to wait for another process that is writing.
    """

    def __init__(
        self,
        path: Path,
        *,
        header: dict[str, Any],
        check: Callable[[dict[str, Any]], None],
        lock_timeout: float,
    ) -> None:
        self.path = path
        self._header = header
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
            except BaseException:  # whatever it is, the old text stands
                self.forget()
                raise

    def forget(self) -> None:
        """Drop what is in memory; the next use reads the file."""
        with self._threads:
            self._data, self._signature = {}, None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_private_folder(self.path.parent)
            with hold(self._lock_path, self._lock_timeout) as is_held:
                if not is_held:
                    raise StorageError(
                        f"{self.path} was locked by another process for {self._lock_timeout:g} s; "
                        "nothing is written"
                    )
                yield
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror or error}; it is as it was"
            ) from error

    def _refresh(self) -> None:
        try:
            with self.path.open("rb") as file:
                status, head = os.fstat(file.fileno()), file.read(64)
                signature = (status.st_mtime_ns, status.st_size, status.st_ino, head)
                if signature == self._signature:
                    return
                raw = head + file.read()
        except FileNotFoundError:
            self._data, self._signature = {}, None
            return
        except OSError as error:
            raise StorageError(f"{self.path} cannot be read: {error.strerror or error}") from error
        self._data, self._signature = self._parse(raw), signature

    def _parse(self, raw: bytes) -> dict[str, Any]:
        try:
            data = json.loads(raw.decode("utf-8", "surrogatepass")) if raw.strip() else {}
        except (ValueError, RecursionError) as error:
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
        revision = self._data.get(_REVISION, 0)
        first = {**self._header, _REVISION: revision + 1 if isinstance(revision, int) else 1}
        data = {**first, **{key: value for key, value in self._data.items() if key not in first}}
        raw = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
        write_atomically(self.path, [raw])
        status = self.path.stat()
        self._data = data
        self._signature = (status.st_mtime_ns, status.st_size, status.st_ino, raw[:64])
