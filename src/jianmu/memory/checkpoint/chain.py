"""A thread as a chain of rows: whole snapshots, and between them only what changed.

A row is a step. Its payload is JSON: the envelope (a snapshot), or the changes that lead from the step before
to it, as `{"state": [...], "tree": [...], "runtime_metadata": [...]}` of `jianmu.codec.delta` changes. A new
snapshot is due once the deltas since the last one outweigh it, so that what is written stays within three
times what was said, and a step is read from one snapshot and at most as many bytes of deltas.

No SQL here: a back end stores `Row`s, and asks this module what the next one is and what some of them mean.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json

from jianmu.codec.delta import apply_changes
from jianmu.codec.dump import StateDump, changes_between
from jianmu.errors import CheckpointCorruptError, CheckpointFormatError, CipherError
from jianmu.memory.checkpoint.base import Cipher, JournalRecord
from jianmu.memory.checkpoint.plain import encode_plain

__all__ = ["Chain", "Head", "Row"]

_PARTS = ("state", "tree", "runtime_metadata")
_FORMAT = 1
_PLAIN, _SEALED = 0, 1
_SMALLEST = 512
"""A snapshot weighs at least so much, so that a tiny state is not written whole every other step."""


@dataclass(frozen=True, slots=True)
class Row:
    """One stored step.

    Attributes:
        step: The step.
        previous: The step before it in the chain; None for the first one.
        snapshot: The step of the snapshot that it is read from; itself for a snapshot.
        weight: Bytes of the deltas from that snapshot up to and with this row.
        time: Seconds since the epoch, by the writer's clock.
        body: A head of 6 bytes (format, sealed or not, CRC-32) and the payload.
    """

    step: int
    previous: int | None
    snapshot: int
    weight: int
    time: float
    body: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """Where a thread stands, with what the next delta is held against.

    Attributes:
        row: The newest row, without its body.
        base: Bytes of its snapshot.
        parts: State, tree and metadata as saved; nobody else may change them.
    """

    row: Row
    base: int
    parts: Mapping[str, Any]


class Chain:
    """Makes rows of steps and steps of rows.

    Args:
        cipher: Seals payloads, bound to thread, step and kind; or None.
    """

    def __init__(self, cipher: Cipher | None = None) -> None:
        self._cipher = cipher

    def extend(
        self, thread_id: str, head: Head | None, envelope: dict[str, Any], time: float
    ) -> tuple[Row, Head]:
        """Return the row for the next step of a thread, and the head that the thread then has.

        Raises:
            EncodeError: A value that JSON would alter or cannot hold.
        """
        step, parts = envelope["step"], {name: envelope[name] for name in _PARTS}
        delta = self._delta(thread_id, head, parts, step) if head is not None else None
        if head is None or delta is None or head.row.weight + len(delta) > head.base:
            previous = None if head is None else head.row.step
            body = self._body(thread_id, step, True, encode_plain(parts))
            row = Row(step, previous, step, 0, time, body)
            base = max(len(body), _SMALLEST)
        else:
            row = Row(step, head.row.step, head.row.snapshot, head.row.weight + len(delta), time, delta)
            base = head.base
        kept = {name: _frozen(value) for name, value in parts.items()}
        return row, Head(replace(row, body=b""), base, kept)

    def _delta(self, thread_id: str, head: Head, parts: dict[str, Any], step: int) -> bytes | None:
        changed: dict[str, Any] = {}
        for name in _PARTS:
            old, new = head.parts[name], parts[name]
            if isinstance(old, Mapping) and isinstance(new, Mapping):
                if changes := changes_between(old, new):
                    changed[name] = changes
            elif old is not None or new is not None:
                return None
        return self._body(thread_id, step, False, encode_plain(changed))

    def resume(self, thread_id: str, rows: list[Row], previous: int | None = None) -> Head:
        """Return the head of a thread from the rows of its newest step, as `envelope` takes them."""
        envelope = self.envelope(thread_id, rows, previous)
        parts = {name: envelope[name] for name in _PARTS}
        return Head(replace(rows[-1], body=b""), max(len(rows[0].body), _SMALLEST), parts)

    def envelope(self, thread_id: str, rows: list[Row], previous: int | None = None) -> dict[str, Any]:
        """Return the envelope of the last of `rows`: a snapshot and all deltas after it, in order.

        Args:
            thread_id: The thread.
            rows: At least one.
            previous: The newest step before these rows, to offer when the snapshot itself is damaged.

        Raises:
            CheckpointCorruptError: A row no longer checks; it names the step and the one before.
            CheckpointFormatError: A row is of a newer format.
            CipherError: The key is wrong, or a row was altered or is plain where a sealed one belongs.
        """
        return deque(self.walk(thread_id, rows, previous), maxlen=1)[0]

    def walk(
        self, thread_id: str, rows: Iterable[Row], previous: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the envelope of each row; the same objects grow from one to the next."""
        parts: dict[str, Any] = {}
        before = previous
        for row in rows:
            whole = row.snapshot == row.step
            try:
                payload = self._open(thread_id, row.step, whole, row.body)
                if whole:
                    parts = {name: payload[name] for name in _PARTS}
                elif row.previous != before:
                    raise _BrokenRowError("the step it builds on is missing")
                else:
                    for name, changes in payload.items():
                        apply_changes(parts[name], changes)
            except (_BrokenRowError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise _corrupt(thread_id, row.step, before, error) from error
            before = row.step
            yield {"step": row.step, **parts}

    def move(self, thread_id: str, new_thread_id: str, row: Row) -> Row:
        """Return a row of one thread as a row of another.

        Raises:
            CheckpointCorruptError: It no longer checks.
        """
        whole = row.snapshot == row.step
        try:
            payload = self._payload(thread_id, row.step, whole, row.body)
        except _BrokenRowError as error:
            raise _corrupt(thread_id, row.step, row.previous, error) from error
        return replace(row, body=self._body(new_thread_id, row.step, whole, payload))

    def thin(self, thread_id: str, rows: Iterable[Row], gone: set[int]) -> Iterator[Row]:
        """Yield the rows that stay when the steps in `gone` go, rebuilt where they stood on one of those."""
        kept: Row | None = None
        broken = False
        rows = list(rows)
        for row, envelope in zip(rows, self.walk(thread_id, rows), strict=True):
            if row.step in gone:
                broken = True
                continue
            previous = None if kept is None else kept.step
            if row.snapshot == row.step:
                kept = replace(row, previous=previous)
            elif broken or kept is None:
                body = self._body(thread_id, row.step, True, encode_plain({n: envelope[n] for n in _PARTS}))
                kept = Row(row.step, previous, row.step, 0, row.time, body)
            else:
                weight = kept.weight + len(row.body)
                kept = replace(row, previous=previous, snapshot=kept.snapshot, weight=weight)
            broken = False
            yield kept

    def seal_journal(self, thread_id: str, record: JournalRecord) -> bytes:
        """Return one journal record as stored bytes.

        Raises:
            EncodeError: A value that JSON would alter or cannot hold.
        """
        return self._body(thread_id, None, False, encode_plain(record))

    def open_journal(self, thread_id: str, body: bytes) -> JournalRecord:
        """Return what `seal_journal` was given.

        Raises:
            CheckpointCorruptError: It no longer checks.
        """
        try:
            record: JournalRecord = self._open(thread_id, None, False, body)
        except _BrokenRowError as error:
            raise CheckpointCorruptError(
                f"thread {thread_id!r}: a journal record is damaged ({error})", thread_id=thread_id
            ) from error
        return record

    def _body(self, thread_id: str, step: int | None, whole: bool, payload: bytes) -> bytes:
        sealed = _PLAIN
        if self._cipher is not None:
            payload, sealed = self._cipher.seal(payload, aad=_place(thread_id, step, whole)), _SEALED
        head = bytes((_FORMAT, sealed))
        return head + _sum(head, thread_id, step, whole, payload) + payload

    def _payload(self, thread_id: str, step: int | None, whole: bool, body: bytes) -> bytes:
        if len(body) < 6:
            raise _BrokenRowError("it is too short")
        head, payload = body[:2], body[6:]
        if body[2:6] != _sum(head, thread_id, step, whole, payload):
            raise _BrokenRowError("its checksum does not match")
        if head[0] != _FORMAT:
            raise CheckpointFormatError(
                f"thread {thread_id!r} has a record of format {head[0]}, and this version reads up to "
                f"{_FORMAT}; upgrade jianmu"
            )
        if self._cipher is None and head[1] == _SEALED:
            raise CipherError(f"thread {thread_id!r} is sealed: pass the cipher= it was saved with")
        if self._cipher is not None and head[1] == _PLAIN:
            raise CipherError(f"thread {thread_id!r} holds a plain record where a sealed one belongs")
        return (
            payload
            if self._cipher is None
            else self._cipher.open(payload, aad=_place(thread_id, step, whole))
        )

    def _open(self, thread_id: str, step: int | None, whole: bool, body: bytes) -> Any:
        payload = self._payload(thread_id, step, whole, body)
        try:
            return _load(payload)
        except ValueError as error:
            raise _BrokenRowError("it is not JSON") from error


class _BrokenRowError(ValueError):
    """A row that is not what was saved."""


def _corrupt(thread_id: str, step: int, before: int | None, error: Exception) -> CheckpointCorruptError:
    instead = (
        "there is none before it" if before is None else f"get_checkpoint(step={before}) has the one before"
    )
    return CheckpointCorruptError(
        f"thread {thread_id!r}, step {step}: the record is damaged ({error}); {instead}",
        thread_id=thread_id,
        step=step,
        previous_step=before,
    )


def _place(thread_id: str, step: int | None, whole: bool) -> bytes:
    return json.dumps([_FORMAT, thread_id, step, whole]).encode()


def _sum(head: bytes, thread_id: str, step: int | None, whole: bool, payload: bytes) -> bytes:
    start = zlib.crc32(_place(thread_id, step, whole), zlib.crc32(head))
    return zlib.crc32(payload, start).to_bytes(4, "big")


def _load(payload: bytes) -> Any:
    try:
        return from_json(payload)
    except ValueError:
        return json.loads(payload)  # nested deeper, or with half a surrogate pair


def _frozen(value: Any) -> Any:
    """Return what a caller cannot change: a dump as it is, else a copy made by way of its text."""
    if value is None or isinstance(value, StateDump):
        return value
    return _load(encode_plain({"value": value}))["value"]
