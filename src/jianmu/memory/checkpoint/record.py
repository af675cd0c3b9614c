"""One stored line: a JSON object with the envelope's keys and ``thread``, ``format``, ``time`` and ``sum``.

``sum`` is the CRC-32 (zlib's, 8 lower-case hex digits) of all bytes before ``,"sum"``, so a line can be
checked before it is parsed. A line without ``sum`` and ``format``, such as one written by hand, is taken as
it is. With a cipher, the envelope is inside ``sealed`` (base64), bound to kind, format, thread and step.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic_core import from_json

from jianmu.errors import CheckpointFormatError, CipherError
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.envelope import extract_checkpoint_payload

__all__ = [
    "FORMAT",
    "BrokenRecordError",
    "RecordCodec",
    "is_complete",
    "is_sound",
    "step_of",
    "thread_of",
    "time_of",
]

FORMAT = 1
"""The format that this version writes, and the newest that it reads."""

Kind = Literal["checkpoint", "journal"]

_SUM = re.compile(rb',"sum":"([0-9a-f]{8})"\}')
_SUM_LENGTH = len(',"sum":"00000000"}')
_STEP = re.compile(rb'\{\s*"step"\s*:\s*(\d+)\s*[,}]')
_TIME = re.compile(rb',"time":"([0-9T:.+-]+)","sum":"[0-9a-f]{8}"\}')
_TIME_REACH = 80
_OWN_KEYS = ("thread", "format", "time", "sum")


class BrokenRecordError(ValueError):
    """A line that no longer is what was saved; the message says how that shows."""


def is_sound(line: bytes) -> bool:
    """Whether a line is a record as it was saved; one with a checksum is not parsed."""
    try:
        found = _check_sum(line)
        return found or isinstance(_parse(line), dict)
    except BrokenRecordError:
        return False


def is_complete(line: bytes) -> bool:
    """Whether a line without a newline is a record all the same, and not the rest of a torn write."""
    try:
        return _check_sum(line) or extract_checkpoint_payload(_parse(line)) is not None
    except BrokenRecordError:
        return False


def step_of(line: bytes) -> int | None:
    """Return the step of a line, as far as it can still be read."""
    found = _STEP.match(line)
    if found:
        return int(found[1])
    try:
        step = _parse(line).get("step")
    except (BrokenRecordError, AttributeError):
        return None
    return step if type(step) is int else None


def thread_of(line: bytes) -> str | None:
    """Return the thread that a line, or the end of one, names."""
    start = line.rfind(b',"thread":')
    try:
        record = json.loads(b"{" + line[start + 1 :]) if start >= 0 else _parse(line)
        thread_id = record.get("thread")
    except (ValueError, AttributeError):
        return None
    return thread_id if isinstance(thread_id, str) else None


def time_of(line: bytes) -> datetime | None:
    """Return the time that a line ends with."""
    found = _TIME.search(line, max(0, len(line) - _TIME_REACH))
    return datetime.fromisoformat(found[1].decode()) if found else None


class RecordCodec:
    """Makes lines of records, and records of lines.

    Args:
        cipher: Seals what is stored, or None.
    """

    def __init__(self, cipher: Cipher | None = None) -> None:
        self._cipher = cipher

    def encode(
        self, kind: Kind, thread_id: str, body: bytes, *, time: float, step: int | None = None
    ) -> bytes:
        """Return the line for `body`, a JSON object that begins with its step if it has one."""
        if self._cipher is not None:
            sealed = base64.b64encode(self._cipher.seal(body, aad=_aad(kind, thread_id, step)))
            head = b"{" if step is None else b'{"step":%d,' % step
            body = b'%b"sealed":"%b"}' % (head, sealed)
        moment = datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds")
        return _finish(body, thread_id, moment)

    def decode(self, kind: Kind, thread_id: str, line: bytes) -> Any:
        """Return what was saved, without the keys of this module.

        Raises:
            BrokenRecordError: The line is not what was saved.
            CheckpointFormatError: It is of a newer format.
            CipherError: The key is wrong, or the line is plain where a sealed one belongs, or the reverse.
        """
        record = _parse(line)
        if not isinstance(record, dict):
            return record
        if record.get("thread", thread_id) != thread_id:
            raise BrokenRecordError("it is of another thread")
        if "format" in record:
            _check_format(record["format"], thread_id)
            for key in _OWN_KEYS:
                record.pop(key, None)
        if self._cipher is not None:
            return self._unseal(self._cipher, kind, thread_id, record)
        if "sealed" in record and "state" not in record:
            raise CipherError(f"thread {thread_id!r} is sealed: pass the cipher= it was saved with")
        return record

    def copy(self, line: bytes, thread_id: str, new_thread_id: str, *, now: float) -> bytes:
        """Return the line of the same checkpoint for another thread; plain bytes are not decoded.

        Args:
            line: A sound line.
            thread_id: Its thread.
            new_thread_id: The other.
            now: The time for a line that has none.
        """
        step, moment = step_of(line), time_of(line)
        if self._cipher is None and moment is not None:
            body = line[: line.rindex(b',"thread":')] + b"}"
            return _finish(body, new_thread_id, moment.isoformat(timespec="microseconds"))
        envelope = self.decode("checkpoint", thread_id, line)
        body = json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
        time = now if moment is None else moment.timestamp()
        return self.encode("checkpoint", new_thread_id, body, time=time, step=step)

    def _unseal(self, cipher: Cipher, kind: Kind, thread_id: str, record: dict[str, Any]) -> Any:
        if set(record) not in ({"sealed"}, {"step", "sealed"}):
            raise CipherError(f"thread {thread_id!r} holds a plain record where a sealed one belongs")
        step = record.get("step")
        try:
            sealed = base64.b64decode(record["sealed"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise BrokenRecordError("its sealed part is not base64") from error
        try:
            text = cipher.open(sealed, aad=_aad(kind, thread_id, step))
        except CipherError as error:
            where = f"thread {thread_id!r}, " + ("journal" if step is None else f"step {step}")
            raise CipherError(f"{where}: {error}") from error
        opened = _load(text)
        if step is not None and opened.get("step") != step:
            raise BrokenRecordError("its step inside is not the one outside")
        return opened


def _finish(body: bytes, thread_id: str, moment: str) -> bytes:
    head = memoryview(body)[:-1]  # a large state is copied once
    tail = f',"thread":{json.dumps(thread_id)},"format":{FORMAT},"time":"{moment}"'.encode()
    return b"".join((head, tail, b',"sum":"%08x"}' % zlib.crc32(tail, zlib.crc32(head))))


def _check_sum(line: bytes) -> bool:
    """Return whether the line has a checksum.

    Raises:
        BrokenRecordError: It has, and it does not match.
    """
    found = _SUM.fullmatch(line, max(0, len(line) - _SUM_LENGTH))
    if found and int(found[1], 16) != zlib.crc32(memoryview(line)[: found.start()]):
        raise BrokenRecordError("its checksum does not match")
    return found is not None


def _parse(line: bytes) -> Any:
    line = line.rstrip(b"\r\t ")  # what an editor may leave before the newline
    checked = _check_sum(line)
    record = _load(line)
    if isinstance(record, dict) and not checked and ("format" in record or "sum" in record):
        raise BrokenRecordError("its checksum is missing")
    return record


def _load(line: bytes) -> Any:
    try:
        return from_json(line)  # from the bytes, without a text four times their size
    except ValueError:
        pass  # not JSON, or nested deeper or with half a surrogate pair, as only the other parser takes
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BrokenRecordError("it is not JSON") from error


def _check_format(found: object, thread_id: str) -> None:
    if found != FORMAT:
        raise CheckpointFormatError(
            f"thread {thread_id!r} has a record of format {found!r}, and this version reads up to {FORMAT}; "
            "upgrade jianmu"
        )


def _aad(kind: Kind, thread_id: str, step: int | None) -> bytes:
    return json.dumps([kind, FORMAT, thread_id, step]).encode()
