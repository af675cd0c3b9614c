"""One thread on disk: its records and its journal, and what to say when one of them is damaged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from jianmu.errors import CheckpointCorruptError, StorageError
from jianmu.memory.checkpoint.arguments import no_such_step
from jianmu.memory.checkpoint.base import CheckpointInfo
from jianmu.memory.checkpoint.envelope import extract_checkpoint_payload
from jianmu.memory.checkpoint.names import file_stem
from jianmu.memory.checkpoint.record import (
    BrokenRecordError,
    RecordCodec,
    is_complete,
    is_sound,
    step_of,
    thread_of,
    time_of,
)
from jianmu.storage.atomic import sync_folder
from jianmu.storage.line_log import Line, LineLog, LogReader

__all__ = ["Head", "ThreadFile", "thread_named_by"]

_log = logging.getLogger("jianmu.checkpoint")
_TRIES = 5
_ID_REACH = 4096

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Head:
    """Where a record is in the file, and what can be told without parsing it.

    Attributes:
        start: Its first byte.
        length: Bytes, without the newline.
        step: Its step, if that can still be read.
        time: When it was saved; the file's own time if it does not say.
        sound: Whether its checksum holds.
    """

    start: int
    length: int
    step: int | None
    time: datetime
    sound: bool


class ThreadFile:
    """The files of one thread.

    Args:
        root: The checkpointer's folder.
        thread_id: The thread.
        codec: Makes and reads its lines.
        durable: Whether a write waits for the disk.
        on_torn: Called with the bytes passed over and the newest whole step, before that step is returned.
    """

    def __init__(
        self,
        root: Path,
        thread_id: str,
        codec: RecordCodec,
        *,
        durable: bool,
        on_torn: Callable[[ThreadFile, LogReader, int | None], None],
    ) -> None:
        stem = file_stem(thread_id)
        self.thread_id = thread_id
        self.gate = root / f"{stem}.lock"
        self.lease = root / f"{stem}.lease"
        self.log = LineLog(root / f"{stem}.jsonl", is_complete, durable=durable)
        self.journal = LineLog(root / f"{stem}.journal", is_complete, durable=durable)
        self._codec = codec
        self._on_torn = on_torn

    def exist(self) -> bool:
        """Whether there is any file of this thread but its locks."""
        return self.log.path.exists() or self.journal.path.exists()

    def remove(self) -> bool:
        """Remove the records, the journal and the leftovers of a crash; return whether there were records."""
        existed = self.log.remove()
        self.journal.remove()
        sync_folder(self.log.path.parent)
        return existed

    def newest(self) -> dict[str, Any] | None:
        """Return the newest envelope; costs what its line costs, however long the file is."""
        return self._read(self._newest, None)

    def newest_step(self) -> int | None:
        """Return the newest step, its record checked and not parsed."""
        return self._read(self._newest_step, None)

    def at(self, step: int) -> dict[str, Any] | None:
        """Return the envelope at `step`; costs what was saved since."""
        return self._read(lambda reader: self._at(reader, step), None)

    def heads(self, limit: int | None = None) -> list[Head]:
        """Return the heads of the records, newest first."""

        def read(reader: LogReader) -> list[Head]:
            found: list[Head] = []
            for head, _ in self._heads(reader):
                if limit is not None and len(found) >= limit:
                    break
                found.append(head)
            return found

        return self._read(read, [])

    def infos(self, limit: int | None) -> list[CheckpointInfo]:
        """Return the heads of the sound records, newest first."""
        infos: list[CheckpointInfo] = []
        for head in self.heads() if limit is None else self._sound_heads(limit):
            if not head.sound:
                _log.warning("thread %r: a record that fails its checksum is not listed", self.thread_id)
            elif head.step is not None:
                infos.append(CheckpointInfo(head.step, head.time, head.length + 1))
        return infos

    def until(self, step: int | None) -> list[Head]:
        """Return the heads up to and with `step` (None = newest), the oldest first.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            CheckpointCorruptError: The record of that step fails its checksum.
        """
        heads = self.heads()
        for index, head in enumerate(heads):
            if head.step == step or (step is None and (head.step is not None or not head.sound)):
                if not head.sound:
                    raise self._corrupt(
                        head.step, _previous(heads[index + 1 :]), "its checksum does not match"
                    )
                return heads[index:][::-1]
        raise no_such_step(self.thread_id, step)

    def lines_at(self, heads: list[Head]) -> Iterator[bytes]:
        """Yield the lines of `heads` in their order.

        Raises:
            StorageError: The file was rewritten since the heads were read.
        """
        with self.log.open() as reader:
            if reader is None:
                raise self._changed()
            for head in heads:
                line = reader.read(head.start, head.length)
                if len(line) != head.length or step_of(line) != head.step or is_sound(line) != head.sound:
                    raise self._changed()
                yield line

    def journal_records(self) -> list[Any]:
        """Return the journal's records in the order of writing.

        Raises:
            CheckpointCorruptError: An acknowledged one fails its checksum.
        """
        with self.journal.open() as reader:
            if reader is None:
                return []
            if reader.torn:
                self._on_torn(self, reader, None)
            try:
                decoded = [
                    self._codec.decode("journal", self.thread_id, line.data) for line in reader.lines()
                ]
            except BrokenRecordError as error:
                raise CheckpointCorruptError(
                    f"the journal of thread {self.thread_id!r} has a record that fails its checksum: "
                    f"{error}; trim_journal(thread_id, []) drops the journal, "
                    "and what it had finished runs again",
                    thread_id=self.thread_id,
                ) from error
            return decoded[::-1]

    def _read(self, read: Callable[[LogReader], Result], default: Result) -> Result:
        """Read the open file; if it fails and somebody wrote meanwhile, read again."""
        for last in (*[False] * (_TRIES - 1), True):
            with self.log.open() as reader:
                if reader is None:
                    return default
                try:
                    return read(reader)
                except CheckpointCorruptError:
                    if last or not reader.changed():
                        raise
        raise AssertionError("the last try returns or raises")

    def _newest(self, reader: LogReader) -> dict[str, Any] | None:
        lines = reader.lines()
        line = next(lines, None)
        self._note_torn(reader, line)
        return None if line is None else self._decode(line, lines)

    def _newest_step(self, reader: LogReader) -> int | None:
        lines = reader.lines()
        line = next(lines, None)
        self._note_torn(reader, line)
        if line is None:
            return None
        if not is_sound(line.data):
            raise self._broken(line, lines, "its checksum does not match")
        return step_of(line.data)

    def _at(self, reader: LogReader, step: int) -> dict[str, Any] | None:
        damaged = False
        previous: int | None = None
        lines = reader.lines()
        for line in lines:
            found = step_of(line.data)
            if not is_sound(line.data):
                damaged = True  # even the step that it shows may be wrong
            elif found == step:
                return self._decode(line, lines)
            elif found is not None and found < step and previous is None:
                previous = found
        if damaged:
            raise self._corrupt(step, previous, "its checksum does not match, or its step cannot be read")
        return None

    def _heads(self, reader: LogReader) -> Iterator[tuple[Head, bytes]]:
        file_time: datetime | None = None
        for line in reader.lines():
            time = time_of(line.data)
            if time is None:
                file_time = file_time or datetime.fromtimestamp(self.log.path.stat().st_mtime, UTC)
                time = file_time
            yield Head(line.start, len(line.data), step_of(line.data), time, is_sound(line.data)), line.data

    def _sound_heads(self, limit: int) -> list[Head]:
        def read(reader: LogReader) -> list[Head]:
            found: list[Head] = []
            sound = 0
            for head, _ in self._heads(reader):
                if sound >= limit:
                    break
                found.append(head)
                sound += head.sound and head.step is not None
            return found

        return self._read(read, [])

    def _decode(self, line: Line, earlier: Iterator[Line]) -> dict[str, Any] | None:
        try:
            record = self._codec.decode("checkpoint", self.thread_id, line.data)
        except BrokenRecordError as error:
            raise self._broken(line, earlier, str(error)) from error
        return extract_checkpoint_payload(record)

    def _broken(self, line: Line, earlier: Iterator[Line], reason: str) -> CheckpointCorruptError:
        previous = next((step_of(each.data) for each in earlier if is_sound(each.data)), None)
        return self._corrupt(step_of(line.data), previous, reason)

    def _corrupt(self, step: int | None, previous: int | None, reason: str) -> CheckpointCorruptError:
        which = "a record" if step is None else f"step {step}"
        remedy = (
            "there is no whole step before it"
            if previous is None
            else f"step {previous} before it is whole: get_checkpoint(thread_id, step={previous}) reads it, "
            f"truncate_thread(thread_id, step={previous}) goes back to it"
        )
        return CheckpointCorruptError(
            f"thread {self.thread_id!r}: {which} was saved and fails its checksum: {reason}; {remedy}",
            thread_id=self.thread_id,
            step=step,
            previous_step=previous,
        )

    def _changed(self) -> StorageError:
        return StorageError(
            f"thread {self.thread_id!r} was rewritten while it was read; nothing was done, try again"
        )

    def _note_torn(self, reader: LogReader, newest: Line | None) -> None:
        if reader.torn:
            self._on_torn(self, reader, None if newest is None else step_of(newest.data))


def _previous(heads: list[Head]) -> int | None:
    return next((head.step for head in heads if head.sound and head.step is not None), None)


def thread_named_by(path: Path) -> str | None:
    """Return the id of the thread whose ``.jsonl`` is at `path`, or None if it holds no record."""
    with LineLog(path, is_complete, durable=False).open() as reader:
        if reader is None:
            return None
        if not reader.torn and reader.id.size > _ID_REACH:
            near_end = thread_of(reader.read(reader.id.size - _ID_REACH, _ID_REACH))
            if near_end is not None and file_stem(near_end) == path.stem:
                return near_end
        return _thread_in(reader, path.stem)


def _thread_in(reader: LogReader, stem: str) -> str | None:
    records = False
    for line in reader.lines():
        records = records or step_of(line.data) is not None
        thread_id = thread_of(line.data)
        if thread_id is not None and file_stem(thread_id) == stem:
            return thread_id
    return stem if records and file_stem(stem) == stem else None
