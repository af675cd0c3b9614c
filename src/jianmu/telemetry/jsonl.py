"""Events as lines of JSON in a file."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jianmu.errors import StorageError
from jianmu.events import RuntimeEvent
from jianmu.storage.atomic import make_private_folder, replace_file, write_all

__all__ = ["JsonlSink"]


class JsonlSink:
    """A subscriber that appends ``{"time", "type", "payload"}``, one event per line, UTF-8.

    ::

        with JsonlSink("events.jsonl") as sink:
            unsubscribe = runner.event_bus.subscribe(sink)

    The file is for people and tools, not for resuming: it is not flushed to the disk by event, and a payload
    value that JSON does not know is written as its text. Payloads may hold what leaves asked and what failed;
    the file is readable by its owner only.

    Args:
        path: The file; its folder is made if need be, and an existing file is added to.
        max_bytes: When the file has grown to this size it becomes ``<name>.1`` (replacing an older one) and a
            new one is begun; None = never.

    Raises:
        StorageError: The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int | None = None) -> None:
        self._path = Path(path)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._file: int | None = None
        self._size = 0
        self._open()

    def _open(self) -> None:
        try:
            make_private_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise StorageError(f"cannot write events to {self._path}: {error}") from error

    def __call__(self, event: RuntimeEvent) -> None:
        """Append one event; after `close` it is dropped."""
        record = {"time": event.time.isoformat(), "type": event.type, "payload": event.payload}
        line = json.dumps(record, ensure_ascii=False, default=_plain)
        data = line.encode("utf-8", errors="backslashreplace") + b"\n"
        with self._lock:
            if self._file is None:
                return
            if self._max_bytes is not None and self._size and self._size + len(data) > self._max_bytes:
                self._rotate()
            write_all(self._file, data)
            self._size += len(data)

    def _rotate(self) -> None:
        assert self._file is not None
        os.close(self._file)
        self._file = None
        replace_file(self._path, self._path.with_name(f"{self._path.name}.1"))
        self._open()

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else str(value)
