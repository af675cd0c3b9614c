"""One stored step of the SQL back ends: a snapshot, or the changes since the step before.

The stored bytes are one format byte (1 = plain JSON, 2 = sealed) and the JSON text. Each row has a CRC-32
over the step, the step before, the time and these bytes. A delta names the step before it, so that a missing
or exchanged row shows; a snapshot begins anew.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from jianmu.codec.delta import apply_changes
from jianmu.errors import CheckpointFormatError, CipherError
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.content import from_text

__all__ = ["NONE", "BrokenRowError", "Row", "RowCodec", "check", "id_bytes", "thread_key"]

_PLAIN, _SEALED = b"\x01", b"\x02"
_LONGEST_KEY = 128
_HEAD = struct.Struct("<qqd")
NONE = -1
"""Stands for "no step before" in a snapshot."""

Kind = Literal["snapshot", "delta", "journal"]


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
    """One row of the table of steps.

    Attributes:
        step: The step.
        before: The step that a delta leads on from; -1 in a snapshot.
        base: The step of the snapshot that a reader starts from.
        saved: When, in seconds since the epoch.
        sum: The checksum.
        body: The stored bytes.
    """

    step: int
    before: int
    base: int
    saved: float
    sum: int
    body: bytes

    @property
    def kind(self) -> Kind:
        """What the body is."""
        return "snapshot" if self.before == NONE else "delta"


class RowCodec:
    """Makes rows of JSON text, and steps of rows.

    Args:
        cipher: Seals what is stored, or None.
    """

    def __init__(self, cipher: Cipher | None) -> None:
        self._cipher = cipher

    @property
    def seals(self) -> bool:
        """Whether there is a cipher."""
        return self._cipher is not None

    def row(self, thread_id: str, step: int, text: bytes, *, saved: float, before: int, base: int) -> Row:
        """Return the row for one step; `before` is -1 and `base` is `step` for a snapshot."""
        kind: Kind = "snapshot" if before == NONE else "delta"
        body = self.seal(kind, thread_id, step, text)
        return Row(step, before, base, saved, _sum(step, before, saved, body), body)

    def copy(self, row: Row, thread_id: str, new_thread_id: str) -> Row:
        """Return the row of the same step for another thread."""
        check(row)
        if self._cipher is None:
            return row
        text = self.open(row.kind, thread_id, row.step, row.body)
        return self.row(new_thread_id, row.step, text, saved=row.saved, before=row.before, base=row.base)

    def rebuild(self, thread_id: str, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the step that a snapshot and the deltas after it lead to, as ``{"state", "tree", ...}``.

        Raises:
            BrokenRowError: A row is damaged or missing.
            CipherError: The key is wrong, or a row was altered or never sealed.
        """
        if rows[0].before != NONE:
            raise BrokenRowError("the snapshot that it starts from is missing", rows[0].step)
        for row, earlier in zip(rows, (None, *rows), strict=False):
            check(row)
            if earlier is not None and row.before != earlier.step:
                raise BrokenRowError("a step before it is missing", row.step)
        if self._cipher is None and all(row.body[:1] == _PLAIN for row in rows):
            texts = [row.body[1:] for row in rows]  # thousands of them at times
        else:
            texts = [self.open(row.kind, thread_id, row.step, row.body) for row in rows]
        try:
            content: dict[str, Any] = from_text(texts[0])
            later = from_text(b"[%b]" % b",".join(texts[1:]))
            apply_changes(content, [change for changes in later for change in changes])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BrokenRowError(
                f"its content makes no sense ({type(error).__name__})", rows[-1].step
            ) from error
        return content

    def seal(self, kind: Kind, thread_id: str, step: int, text: bytes) -> bytes:
        """Return the bytes to store for `text`."""
        if self._cipher is None:
            return _PLAIN + text
        return _SEALED + self._cipher.seal(text, aad=_aad(kind, thread_id, step))

    def open(self, kind: Kind, thread_id: str, step: int, body: bytes) -> bytes:
        """Return the text of stored bytes.

        Raises:
            CipherError: The key is wrong, or they were altered, or are plain where sealed ones belong.
            CheckpointFormatError: They are of a newer format.
        """
        form, rest = body[:1], body[1:]
        if form not in (_PLAIN, _SEALED):
            raise CheckpointFormatError(
                f"thread {thread_id!r}: a record of format {form.hex() or 'none'}; upgrade jianmu"
            )
        if self._cipher is None:
            if form == _SEALED:
                raise CipherError(f"thread {thread_id!r} is sealed: pass the cipher= it was saved with")
            return rest
        if form == _PLAIN:
            raise CipherError(f"thread {thread_id!r} holds a plain record where a sealed one belongs")
        try:
            return self._cipher.open(rest, aad=_aad(kind, thread_id, step))
        except CipherError as error:
            raise CipherError(f"thread {thread_id!r}, step {step}: {error}") from error


def check(row: Row) -> None:
    """Refuse a row that is not what was saved.

    Raises:
        BrokenRowError: The checksum does not match.
    """
    if _sum(row.step, row.before, row.saved, row.body) != row.sum:
        raise BrokenRowError("its checksum does not match", row.step)


def id_bytes(thread_id: str) -> bytes:
    """Return a thread id as bytes; any two ids differ, also with half a surrogate pair in them."""
    return thread_id.encode("utf-8", "surrogatepass")


def thread_key(thread_id: str) -> bytes:
    """Return the key of a thread: its id, or for a long one its beginning and its BLAKE2b-256 hash.

    An index of PostgreSQL takes keys of up to 2,700 bytes. Short keys are under 128 bytes and long ones are
    exactly that, so no id can pose as another.
    """
    data = id_bytes(thread_id)
    if len(data) < _LONGEST_KEY:
        return data
    return data[: _LONGEST_KEY - 32] + hashlib.blake2b(data, digest_size=32).digest()


def _sum(step: int, before: int, saved: float, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(_HEAD.pack(step, before, saved)))


def _aad(kind: Kind, thread_id: str, step: int) -> bytes:
    return b"%b %d " % (kind.encode(), step) + id_bytes(thread_id)
