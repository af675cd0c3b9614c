r"""An append-only file of lines, read from its end, that a crash or a full disk cannot spoil.

A line ends with the one byte "\n" and nothing else. What follows the last newline is either a whole line
that lost its newline (the caller's `is_whole` knows) or was never acknowledged: a part of a line, or the
zeros that some file systems leave after a power cut. Readers pass over it, the next append removes it.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from jianmu.storage.atomic import (
    WRITE_FLAGS,
    remove_file,
    sync_file,
    sync_folder,
    temporary_of,
    write_all,
    write_atomically,
)

__all__ = ["FileId", "Line", "LineLog", "LogReader"]

_log = logging.getLogger("jianmu.storage")

BLOCK = 64 * 1024
"""Bytes of the first read; each longer reach back for one line doubles, up to `LARGEST_BLOCK`."""
LARGEST_BLOCK = 8 * 1024 * 1024

IsWhole = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class FileId:
    """Which file a path led to, and how long it was.

    Attributes:
        device: Of the file system.
        inode: Of the file.
        size: Bytes.
    """

    device: int
    inode: int
    size: int

    @classmethod
    def of(cls, stat: os.stat_result) -> FileId:
        """Return the identity that `stat` tells."""
        return cls(stat.st_dev, stat.st_ino, stat.st_size)

    def same_file(self, other: FileId) -> bool:
        """Whether both are one file, of whatever length."""
        return (self.device, self.inode) == (other.device, other.inode)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its newline.

    Attributes:
        start: Where it begins in the file.
        data: Its bytes.
    """

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """Where its newline is."""
        return self.start + len(self.data)


class LogReader:
    """The lines of an open file, newest first, each read once.

    Args:
        file: Opened for reading bytes; not closed here.
        is_whole: Whether bytes without a newline are a whole line.

    Attributes:
        id: The file as it was when opened.
        end: Where the last whole line ends, its newline not counted if it has none.
        torn: Bytes after `end` that are no line.
        unended: Whether the last whole line has no newline.
    """

    def __init__(self, file: BinaryIO, is_whole: IsWhole) -> None:
        self._file = file
        self.id = FileId.of(os.fstat(file.fileno()))
        self._backward = _pieces_backward(file, self.id.size)
        start, tail = next(self._backward)
        self._last = _whole_tail(start, tail, is_whole)
        self.unended = self._last is not None
        self.end = start if self._last is None else self._last.end
        self.torn = self.id.size - self.end

    def lines(self) -> Iterator[Line]:
        """Yield the lines, newest first; empty ones are passed over."""
        if self._last is not None:
            yield self._last
        for start, data in self._backward:
            if data.strip():
                yield Line(start, data)

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes at a place; does not disturb `lines`."""
        self._file.seek(start)
        return self._file.read(length)

    def changed(self) -> bool:
        """Whether somebody wrote to the file since it was opened."""
        return FileId.of(os.fstat(self._file.fileno())) != self.id


class LineLog:
    """One file of lines.

    Args:
        path: The file; made 0600 by the first append.
        is_whole: Whether bytes without a newline are a whole line.
        durable: Whether an append returns only when the disk has it (else when the system has it).
    """

    def __init__(self, path: Path, is_whole: IsWhole, *, durable: bool) -> None:
        self.path = path
        self._is_whole = is_whole
        self._durable = durable

    def identify(self) -> FileId | None:
        """Return which file there is now, or None."""
        try:
            return FileId.of(self.path.stat())
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def open(self) -> Iterator[LogReader | None]:
        """Open the file for reading; None if there is none."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            yield None
            return
        with file:
            yield LogReader(file, self._is_whole)

    def append(self, line: bytes, *, create: bool, clean: FileId | None = None) -> FileId:
        """Add one line, and return what the file is now.

        After an error the file holds what it held, or that and a rest which the next append removes.

        Args:
            line: The bytes, without a newline among them.
            create: Whether the file may be made.
            clean: The file as an earlier append returned it; if it still is that, its end is not looked at.

        Raises:
            FileNotFoundError: The file is not there, and `create` is False.
            OSError: The disk refused.
        """
        flags = WRITE_FLAGS | os.O_APPEND | (os.O_CREAT if create else 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            before = FileId.of(os.fstat(descriptor))
            if before != clean:
                line = self._mend(descriptor, line)
            self._write(descriptor, line + b"\n")
            after = FileId.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        if before.size == 0:
            sync_folder(self.path.parent)
        return after

    def truncate(self, end: int) -> FileId:
        """Cut the file after the line that ends at `end`, durably, and return what it is now."""
        descriptor = os.open(self.path, WRITE_FLAGS | os.O_APPEND)
        try:
            os.ftruncate(descriptor, end)
            write_all(descriptor, b"\n")
            sync_file(descriptor)
            return FileId.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Empty the file, if there is one, without a wait for the disk; its name stays, so none is new."""
        try:
            descriptor = os.open(self.path, WRITE_FLAGS | os.O_APPEND)
        except FileNotFoundError:
            return
        try:
            if os.fstat(descriptor).st_size > 1:
                os.ftruncate(descriptor, 0)
                write_all(descriptor, b"\n")
        finally:
            os.close(descriptor)

    def remove(self) -> bool:
        """Remove the file, and what a crash during `rewrite` left; return whether there was a file."""
        existed = remove_file(self.path)
        remove_file(temporary_of(self.path))
        return existed

    def rewrite(self, lines: Iterator[bytes]) -> None:
        """Put `lines` in the place of the file, durably and in one step."""
        write_atomically(self.path, (line + b"\n" for line in lines))

    def _mend(self, descriptor: int, line: bytes) -> bytes:
        """Remove an unacknowledged rest; return `line` so that it starts on a line of its own."""
        with os.fdopen(os.dup(descriptor), "rb") as file:
            reader = LogReader(file, self._is_whole)
        if reader.torn:
            _log.warning("%s: removing %d bytes that were never acknowledged", self.path, reader.torn)
            os.ftruncate(descriptor, reader.end)
        return b"\n" + line if reader.unended else line

    def _write(self, descriptor: int, data: bytes) -> None:
        start = os.fstat(descriptor).st_size
        try:
            write_all(descriptor, data)
            if self._durable:
                sync_file(descriptor)
        except OSError:
            # Take back the part that was written; if even that fails, the next append does it.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, start)
            raise


def _pieces_backward(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield (start, bytes between two newlines), the last first; the first piece may be empty."""
    pieces: list[bytes] = []
    position, block = size, BLOCK
    while position > 0:
        reach = min(block, position)
        position -= reach
        file.seek(position)
        chunk = file.read(reach)
        cut = len(chunk)
        while (newline := chunk.rfind(b"\n", 0, cut)) >= 0:
            pieces.append(chunk[newline + 1 : cut])
            line = b"".join(reversed(pieces))
            pieces.clear()  # before the yield: a long line is held once, not twice
            yield position + newline + 1, line
            cut, block = newline, BLOCK
        pieces.append(chunk[:cut])
        block = min(block * 2, LARGEST_BLOCK)
    yield 0, b"".join(reversed(pieces))


def _whole_tail(start: int, tail: bytes, is_whole: IsWhole) -> Line | None:
    """Return the line that lost its newline: to the crash, to zeros, or to one flipped byte."""
    tail = tail.rstrip(b"\0")
    for candidate in (tail, tail[:-1]):
        if candidate and is_whole(candidate):
            return Line(start, candidate)
    return None
