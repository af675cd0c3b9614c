"""Checkpoints in plain files: one JSON line per save, one file per thread."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from jianmu.errors import CheckpointExistsError, ConfigError, StorageError
from jianmu.memory.checkpoint.arguments import (
    check_limit,
    check_limits,
    check_step,
    check_thread_id,
    require_later_step,
)
from jianmu.memory.checkpoint.base import CheckpointInfo, Cipher, EventListener, JournalRecord
from jianmu.memory.checkpoint.envelope import make_checkpoint_envelope
from jianmu.memory.checkpoint.events import Listeners
from jianmu.memory.checkpoint.file_lease import FileLease
from jianmu.memory.checkpoint.file_rights import WriteRights
from jianmu.memory.checkpoint.journal import live_records
from jianmu.memory.checkpoint.plain import encode_plain
from jianmu.memory.checkpoint.record import RecordCodec
from jianmu.memory.checkpoint.thread_file import Head, ThreadFile, thread_named_by
from jianmu.storage.line_log import FileId, LogReader

__all__ = ["FileCheckpointer"]

_log = logging.getLogger("jianmu.checkpoint")
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a thread had come when this object last wrote it."""

    file: FileId
    step: int


class FileCheckpointer:
    """One ``.jsonl`` file per thread in one folder, one line per save; any process may read it.

    Safe to share between threads, event loops and processes. `docs/checkpoints.md` says what survives what.

    Args:
        root: The folder; made when first needed (0700, files 0600).
        durability: "fsync": a save returns when the disk has it. "flush": when the operating system has it,
            which survives a killed process but not a power cut.
        cipher: Seals every record and journal entry; the thread id, step and time stay readable.
        clock: Seconds since the epoch, for `CheckpointInfo.time`.

    Raises:
        ConfigError: Another `durability`, or a root that names no folder.
    """

    def __init__(
        self,
        root: str | Path = ".outputs/jianmu/checkpoints",
        *,
        durability: Literal["fsync", "flush"] = "fsync",
        cipher: Cipher | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if durability not in ("fsync", "flush"):
            raise ConfigError(f'durability must be "fsync" or "flush", not {durability!r}')
        if "\0" in str(root):
            raise ConfigError("root must name a folder; it holds a NUL character")
        self.root = Path(root)
        self._durable = durability == "fsync"
        self._codec = RecordCodec(cipher)
        self._clock = clock
        self._listeners = Listeners()
        self._master = threading.Lock()
        self._rights = WriteRights(self.root)
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._told: dict[str, FileId] = {}

    # The two methods of every checkpointer

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Append one line; it is on the disk when this returns (with `durability="flush"`, in the system).

        Raises:
            CheckpointArgumentError: An empty thread id, or a step that is no non-negative int.
            CheckpointExistsError: The thread already has this step or a later one.
            CheckpointCorruptError: The newest record fails its checksum, and nothing is put on top of it.
            EncodeError: A value that is not plain JSON data.
            ThreadBusyError: Another run holds the thread.
            LeaseLostError: The thread was deleted during this run.
            StorageError: The disk refused. After any of these the last good checkpoint is what it was.
        """
        files = self._files(thread_id)
        check_step(step)
        body = encode_plain(make_checkpoint_envelope(step, state_dump, tree_state, runtime_metadata))
        line = self._codec.encode("checkpoint", thread_id, body, time=self._clock(), step=step)
        with _storage_errors(f"save step {step} of", thread_id), self._rights.writing(files) as lease:
            known = self._recall(thread_id)
            if known is None or files.log.identify() != known.file:
                known = None
                newest = files.newest_step()
            else:
                newest = known.step
            require_later_step(thread_id, step, newest)
            create = lease is None or lease.file is None
            try:
                after = files.log.append(line, create=create, clean=known.file if known else None)
            except FileNotFoundError:
                if lease is None:
                    raise
                raise lease.mark_lost() from None
            self._remember(thread_id, after, step, lease)

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Return the envelope at `step` (None = newest), or None; the newest costs what its line costs.

        Raises:
            CheckpointCorruptError: The record was saved and fails its checksum; it names the step before.
            CheckpointFormatError: It is of a newer format.
            CipherError: The key is wrong, or the record was altered or never sealed.
            StorageError: The disk refused.
        """
        files = self._files(thread_id)
        if step is not None:
            check_step(step)
        with _storage_errors("read", thread_id):
            return files.newest() if step is None else files.at(step)

    # History

    def list_checkpoints(self, thread_id: str, *, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the heads of the saved steps, newest first; a damaged record is logged and left out."""
        check_limit(limit)
        files = self._files(thread_id)
        with _storage_errors("read", thread_id):
            return files.infos(limit)

    def list_threads(self) -> list[str]:
        """Return the ids of all threads, sorted."""
        with _storage_errors("list threads in", str(self.root)):
            found = (thread_named_by(path) for path in self.root.glob("*.jsonl"))
            return sorted(thread_id for thread_id in found if thread_id is not None)

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread with its journal; return whether there was one.

        A run that holds the thread gets `LeaseLostError` at its next save. The two empty lock files stay.
        """
        files = self._files(thread_id)
        if not files.exist():
            return False
        with _storage_errors("delete", thread_id), self._rights.deleting(files):
            self._recall(thread_id)
            return files.remove()

    def fork_thread(self, thread_id: str, new_thread_id: str, *, step: int | None = None) -> None:
        """Copy a thread up to and with `step` (None = newest) to a new id; the journal is not copied.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            CheckpointExistsError: The new id is taken.
            CheckpointCorruptError: The record of that step fails its checksum.
        """
        source, target = self._files(thread_id), self._files(new_thread_id)
        with _storage_errors("fork", thread_id):
            heads = [head for head in source.until(step) if head.sound and head.step is not None]
            with self._rights.writing(target) as lease:
                if target.heads(limit=1):
                    raise CheckpointExistsError(
                        f"thread {new_thread_id!r} exists; fork to another id, or delete it first"
                    )
                now = self._clock()
                lines = (
                    self._codec.copy(line, thread_id, new_thread_id, now=now)
                    for line in source.lines_at(heads)
                )
                with self._rights.replacing(target, lease):
                    target.log.rewrite(lines)
                self._settle(target, lease)

    def truncate_thread(self, thread_id: str, *, step: int) -> int:
        """Drop every step saved after `step` and the journal; return how many were dropped.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            ThreadBusyError: Another run holds the thread.
        """
        files = self._files(thread_id)
        check_step(step)
        with _storage_errors("truncate", thread_id), self._rights.writing(files) as lease:
            kept = files.until(step)
            dropped = len(files.heads()) - len(kept)
            files.log.truncate(kept[-1].start + kept[-1].length)
            self._settle(files, lease)
            return dropped

    def prune(
        self, thread_id: str, *, keep_last: int | None = None, older_than: datetime | None = None
    ) -> int:
        """Drop old steps, never the newest; return how many. The file is replaced in one step.

        Raises:
            CheckpointArgumentError: Neither limit, or one that means nothing.
            ThreadBusyError: Another run holds the thread.
        """
        files = self._files(thread_id)
        check_limits(keep_last, older_than)
        with _storage_errors("prune", thread_id), self._rights.writing(files) as lease:
            heads = files.heads()
            gone = _prunable(heads, keep_last or 1, older_than)
            if gone:
                kept = [head for head in reversed(heads) if head not in gone]
                with self._rights.replacing(files, lease):
                    files.log.rewrite(files.lines_at(kept))
                self._recall(thread_id)
                _follow(files, lease)
            return len(gone)

    # Journal

    def append_journal(self, thread_id: str, record: JournalRecord) -> None:
        """Keep one answer in the thread's ``.journal``; durable like a save, and with the same errors."""
        files = self._files(thread_id)
        line = self._codec.encode("journal", thread_id, encode_plain(record), time=self._clock())
        with _storage_errors("journal for", thread_id), self._rights.writing(files) as lease:
            try:
                files.journal.append(line, create=False)
            except FileNotFoundError:
                with self._rights.replacing(files, lease):
                    files.journal.append(line, create=True)

    def read_journal(self, thread_id: str) -> list[JournalRecord]:
        """Return the live records in the order of writing.

        Raises:
            CheckpointCorruptError: An acknowledged record fails its checksum.
        """
        files = self._files(thread_id)
        with _storage_errors("read the journal of", thread_id):
            return live_records(files.journal_records())

    def trim_journal(self, thread_id: str, keep: Sequence[JournalRecord]) -> None:
        """Replace the journal by `keep`, in one step."""
        files = self._files(thread_id)
        now = self._clock()
        lines = [self._codec.encode("journal", thread_id, encode_plain(record), time=now) for record in keep]
        with _storage_errors("trim the journal of", thread_id), self._rights.writing(files) as lease:
            if lines:
                with self._rights.replacing(files, lease):
                    files.journal.rewrite(iter(lines))
            else:
                files.journal.clear()

    # Lease, events, end

    def acquire(self, thread_id: str, ttl: float = 30.0) -> FileLease:
        """Take the thread until `release` or the end of this process, which frees it at once.

        Args:
            thread_id: The thread.
            ttl: Not used: the operating system knows when a holder dies.

        Raises:
            ThreadBusyError: Another run holds it.
        """
        files = self._files(thread_id)
        with _storage_errors("lock", thread_id):
            return self._rights.acquire(files)

    def subscribe(self, listener: EventListener) -> Callable[[], None]:
        """Call `listener` with ``checkpoint.damaged`` for each torn end; return what ends that."""
        return self._listeners.subscribe(listener)

    def close(self) -> None:
        """Give back every lease; safe to call twice."""
        self._rights.close()

    def __enter__(self) -> FileCheckpointer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Within

    def _files(self, thread_id: str) -> ThreadFile:
        check_thread_id(thread_id)
        return ThreadFile(
            self.root, thread_id, self._codec, durable=self._durable, on_torn=self._tell_of_torn_end
        )

    def _recall(self, thread_id: str) -> _Place | None:
        """Return how far the thread had come, and forget it until the next save has succeeded."""
        with self._master:
            return self._places.pop(thread_id, None)

    def _remember(self, thread_id: str, file: FileId, step: int, lease: FileLease | None) -> None:
        with self._master:
            self._told.pop(thread_id, None)
            self._places[thread_id] = _Place(file, step)
            while len(self._places) > _REMEMBERED:
                self._places.popitem(last=False)
        if lease is not None:
            lease.file = file

    def _settle(self, files: ThreadFile, lease: FileLease | None) -> None:
        """After a fork or a truncation: no journal of another time, and the holder knows the file."""
        files.journal.clear()
        self._recall(files.thread_id)
        _follow(files, lease)

    def _tell_of_torn_end(self, files: ThreadFile, reader: LogReader, newest: int | None) -> None:
        if self._told.get(files.thread_id) == reader.id:
            return
        if not self._rights.holds(files.thread_id) and (not self._rights.is_idle(files) or reader.changed()):
            return  # somebody is writing this very end
        self._told[files.thread_id] = reader.id
        reason = f"{reader.torn} bytes after the newest whole record were never acknowledged"
        _log.warning("thread %r: %s; going on from step %s", files.thread_id, reason, newest)
        payload = {"thread_id": files.thread_id, "reason": reason, "step": newest}
        self._listeners.tell("checkpoint.damaged", payload)


def _follow(files: ThreadFile, lease: FileLease | None) -> None:
    if lease is not None:
        lease.file = files.log.identify()


def _prunable(heads: list[Head], keep_last: int, older_than: datetime | None) -> set[Head]:
    """Return which of `heads` (newest first) may go; a damaged record stays, as it keeps no step alive."""
    steps = [head for head in heads if head.sound and head.step is not None]
    return {head for head in steps[keep_last:] if older_than is None or head.time < older_than}


@contextlib.contextmanager
def _storage_errors(what: str, thread_id: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot {what} {thread_id!r}: {error.strerror or error}; what was saved before is untouched"
        ) from error
