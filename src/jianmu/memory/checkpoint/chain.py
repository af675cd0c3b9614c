"""Rows of the SQL back ends: a step is a snapshot, or the changes since the step before.

A snapshot of a state with long lists is cut: the lists come in further rows, its parts, so that neither
writer nor reader needs one text of the whole. A bundle repeats the changes of many steps in one row, so that
a reader of a later step needs few rows.

The stored bytes are the JSON text itself, or a byte 2 and the sealed text. Each row has a CRC-32 over the
step, the step before, the time (or number of the part) and these bytes. A delta names the step before it, so
that a missing or exchanged row shows; a snapshot begins anew and says how many parts it has.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from jianmu.codec.delta import apply_changes, merge_changes
from jianmu.errors import CheckpointFormatError, CipherError
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.content import from_text, to_text
from jianmu.memory.checkpoint.sql_schema import id_bytes

__all__ = ["BUNDLE", "NONE", "BrokenRowError", "Read", "Row", "RowCodec", "check"]

_JSON = (b"{", b"[")  # how the text of any row begins
_SEALED = b"\x02"
_FIRST_PLAIN = b"\x01"  # before the text, in files of schema version 1
_HEAD = struct.Struct("<qqd")
_PARTS = "parts"
NONE = -1
"""Stands for "no step before" in a snapshot."""
BUNDLE = -1
"""The part number of a bundle; that of a step itself is 0, and those of a snapshot's parts count from 1."""


class BrokenRowError(Exception):
    """A row that is not what was saved.

    Args:
        reason: How that shows.
        step: The row's step.
    """

    def __init__(self, reason: str, step: int) -> None:
        super().__init__(reason)
        self.step = step


class Row(NamedTuple):
    """One row of the table of steps, or of that of parts.

    Attributes:
        step: The step.
        before: The step that a delta leads on from; -1 in a snapshot.
        base: The step of the snapshot that a reader starts from.
        saved: When, in seconds since the epoch; 0 for a part.
        sum: The checksum.
        body: The stored bytes.
        part: 0 for the step itself, the number of a snapshot's part, or `BUNDLE`.
    """

    step: int
    before: int
    base: int
    saved: float
    sum: int
    body: bytes
    part: int = 0

    @property
    def kind(self) -> str:
        """What the body is, as a seal is bound to."""
        if self.part:
            return "bundle" if self.part == BUNDLE else f"part {self.part}"
        return "snapshot" if self.before == NONE else "delta"


class Read(NamedTuple):
    """One row as read.

    Attributes:
        step: The step.
        part: As in `Row`.
        before: As in `Row`.
        size: Bytes of the stored body.
        value: The content of a snapshot, or a list of changes.
        text: The JSON text of a delta; nothing for other rows.
    """

    step: int
    part: int
    before: int
    size: int
    value: Any
    text: bytes


class RowCodec:
    """Makes rows of JSON text, and steps of rows.

    Args:
        cipher: Seals what is stored, or None.
    """

    def __init__(self, cipher: Cipher | None) -> None:
        self._cipher = cipher

    def delta(self, thread_id: str, step: int, text: bytes, *, saved: float, before: int, base: int) -> Row:
        """Return the row for a step of changes."""
        return self._seal_row(thread_id, Row(step, before, base, saved, 0, text))

    def snapshot(self, thread_id: str, step: int, texts: Sequence[bytes], *, saved: float) -> list[Row]:
        """Return the row for a snapshot and those of its parts, from `Content.snapshot`."""
        head, *lists = texts
        if lists:
            head = b'{"%b":%d,%b' % (_PARTS.encode(), len(lists), head[1:])
        rows = [Row(step, NONE, step, saved, 0, head)]
        rows.extend(Row(step, step, step, 0.0, 0, text, number) for number, text in enumerate(lists, 1))
        return [self._seal_row(thread_id, row) for row in rows]

    def bundle(self, thread_id: str, step: int, texts: Sequence[bytes], *, before: int, base: int) -> Row:
        """Return the row that repeats the changes `texts` of the steps after `before` up to `step`."""
        changes = from_text(b"[%b]" % b",".join(texts))
        text = to_text(merge_changes([change for each in changes for change in each]))
        return self._seal_row(thread_id, Row(step, before, base, 0.0, 0, text, BUNDLE))

    def copy(self, row: Row, thread_id: str, new_thread_id: str) -> Row:
        """Return the same row for another thread."""
        check(row)
        if self._cipher is None:
            return row
        return self._seal_row(new_thread_id, row._replace(body=self._text(thread_id, row)))

    def read(self, thread_id: str, row: Row) -> Read:
        """Check and read one row.

        Raises:
            BrokenRowError: It is damaged.
            CipherError: The key is wrong, or it was altered or never sealed.
            CheckpointFormatError: It is of a newer format.
        """
        check(row)
        step, before, _, _, _, body, part = row
        text = body
        if self._cipher is not None or body[:1] not in _JSON:
            text = self._text(thread_id, row)
        try:
            value = from_text(text)
        except (ValueError, RecursionError) as error:
            raise BrokenRowError(_senseless(error), step) from error
        return Read(step, part, before, len(body), value, text if part == 0 and before != NONE else b"")

    def rebuild(self, reads: Sequence[Read]) -> dict[str, Any]:
        """Return the step that a snapshot and what follows it lead to, as ``{"state", "tree", ...}``.

        Raises:
            BrokenRowError: A row is missing or makes no sense.
        """
        first = reads[0]
        if first.before != NONE:
            raise BrokenRowError("the snapshot that it starts from is missing", first.step)
        for read, earlier in zip(reads[1:], reads, strict=False):
            if read.before != earlier.step:
                raise BrokenRowError("a step before it is missing", read.step)
        try:
            content: dict[str, Any] = first.value
            if sum(read.part > 0 for read in reads) != content.pop(_PARTS, 0):
                raise BrokenRowError("a part of its snapshot is missing", first.step)
            for read in reads[1:]:
                apply_changes(content, read.value)
        except (KeyError, TypeError, AttributeError) as error:
            raise BrokenRowError(_senseless(error), reads[-1].step) from error
        return content

    def seal(self, kind: str, thread_id: str, step: int, text: bytes) -> bytes:
        """Return the bytes to store for `text`."""
        if self._cipher is None:
            return text
        return _SEALED + self._cipher.seal(text, aad=_aad(kind, thread_id, step))

    def open(self, kind: str, thread_id: str, step: int, body: bytes) -> bytes:
        """Return the text of stored bytes.

        Raises:
            CipherError: The key is wrong, or they were altered, or are plain where sealed ones belong.
            CheckpointFormatError: They are of a newer format.
        """
        form = body[:1]
        if form not in (*_JSON, _FIRST_PLAIN, _SEALED):
            raise CheckpointFormatError(
                f"thread {thread_id!r}: a record of format {form.hex() or 'none'}; upgrade jianmu"
            )
        if self._cipher is None:
            if form == _SEALED:
                raise CipherError(f"thread {thread_id!r} is sealed: pass the cipher= it was saved with")
            return body if form in _JSON else body[1:]
        if form != _SEALED:
            raise CipherError(f"thread {thread_id!r} holds a plain record where a sealed one belongs")
        try:
            return self._cipher.open(body[1:], aad=_aad(kind, thread_id, step))
        except CipherError as error:
            raise CipherError(f"thread {thread_id!r}, step {step}: {error}") from error

    def _seal_row(self, thread_id: str, row: Row) -> Row:
        body = row.body if self._cipher is None else self.seal(row.kind, thread_id, row.step, row.body)
        checksum = _sum(row.step, row.before, float(row.part) or row.saved, body)
        return Row(row.step, row.before, row.base, row.saved, checksum, body, row.part)

    def _text(self, thread_id: str, row: Row) -> bytes:
        return self.open(row.kind, thread_id, row.step, row.body)


def check(row: Row) -> None:
    """Refuse a row that is not what was saved.

    Raises:
        BrokenRowError: The checksum does not match.
    """
    step, before, _, saved, checksum, body, part = row
    if _sum(step, before, float(part) or saved, body) != checksum:
        raise BrokenRowError("its checksum does not match", step)


def _sum(step: int, before: int, moment: float, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(_HEAD.pack(step, before, moment)))


def _aad(kind: str, thread_id: str, step: int) -> bytes:
    return b"%b %d " % (kind.encode(), step) + id_bytes(thread_id)


def _senseless(error: Exception) -> str:
    return f"its content makes no sense ({type(error).__name__})"
