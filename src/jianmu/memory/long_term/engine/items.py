"""What is stored: drafts made of a caller's input, and rows as the index needs them."""

from __future__ import annotations

import hashlib
import json
import os
import time as clocks
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from jianmu.errors import MemoryCorruptError, MemoryInputError
from jianmu.memory.long_term.base import LongTermMemoryInput, Namespace
from jianmu.memory.long_term.engine.times import When, moment
from jianmu.memory.long_term.inputs import input_text
from jianmu.messages import Message

__all__ = [
    "Draft",
    "Row",
    "checksum",
    "digest_of",
    "draft_of",
    "named_speaker",
    "new_id",
    "space_path",
    "storable",
    "to_json",
]

_ROLES = frozenset({"user", "assistant", "ai", "system", "tool", "human", "bot", "agent", "model"})


@dataclass(frozen=True, slots=True)
class Draft:
    """One text to be stored.

    Attributes:
        content: Verbatim.
        digest: Of the normalised text (NFKC, white space collapsed): equal digests are one item.
        time: When it was said or became true, seconds since 1970; `dated` tells that the caller said so.
        day: The same as a calendar day, e.g. 20230508.
        metadata: JSON text.
        expires: When it stops being returned, or None.
    """

    content: str
    digest: bytes
    time: float
    day: int
    dated: bool
    speaker: str | None
    session: str | None
    metadata: str
    key: str | None
    expires: float | None


@dataclass(slots=True)
class Row:
    """One stored item; `content` and `metadata` are read only where they are needed.

    `unspaced` tells whether a script without spaces occurs in the text.
    """

    id: int
    uid: str
    space: int
    slot: int
    passages: int
    length: int
    before: int | None
    after: int | None
    session: str | None
    speaker: str | None
    time: float
    day: int
    dated: bool
    expires: float | None
    unspaced: bool
    content: str = ""
    metadata: str = "{}"
    digest: bytes = b""
    created: float = 0.0
    updated: float = 0.0
    count: int = 1
    crc: int | None = None

    def sealed(self) -> Row:
        """This row with the checksum (CRC-32) of what it says; its place in the index is not part of it."""
        self.crc = self._checksum()
        return self

    def checked(self) -> Row:
        """This row, if it still says what was stored; one of an earlier format has no checksum.

        Raises:
            MemoryCorruptError: It does not.
        """
        if self.crc is not None and not self._says_what_was_stored():
            raise MemoryCorruptError(
                f"memory {self.uid!r} is not what was stored: its checksum differs; delete() it and record it"
                " again, or restore the database from a backup"
            )
        return self

    def _says_what_was_stored(self) -> bool:
        try:
            return self.crc == self._checksum()
        except (AttributeError, TypeError, ValueError):  # a value of another kind stands there
            return False

    def _checksum(self) -> int:
        expires = None if self.expires is None else float(self.expires)
        return checksum(
            self.uid, self.content, self.metadata, self.session, self.speaker, self.digest.hex(),
            float(self.time), self.day, bool(self.dated), expires, float(self.created), float(self.updated),
            self.count,
        )  # fmt: skip

    @property
    def slots(self) -> range:
        """Where its passages stand."""
        return range(self.slot, self.slot + self.passages)


def draft_of(
    inputs: LongTermMemoryInput,
    *,
    now: float,
    key: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    time: When | None = None,
    speaker: str | None = None,
    session: str | None = None,
    ttl: float | None = None,
) -> Draft:
    """The draft of an input; what a single message says about itself is used where the caller is silent.

    Raises:
        TypeError: `inputs` is nothing that can be recorded.
        ValueError: There is no text in it.
        MemoryInputError: An argument that cannot be used.
    """
    content = storable(input_text(inputs), "the text")
    message = inputs if isinstance(inputs, Message) else None
    if key is not None and not _is_name(key):
        raise MemoryInputError("key has to be a non-empty string or None")
    for name, value in (("speaker", speaker), ("session", session)):
        if value is not None and not isinstance(value, str):
            raise MemoryInputError(f"{name} has to be a string or None, not a {type(value).__name__}")
    if ttl is not None and (isinstance(ttl, bool) or not _positive(ttl)):
        raise MemoryInputError("ttl is in seconds and has to be above 0, or None")
    said: When | None = time
    if message is not None:
        said = message.time if said is None else said
        speaker = message.name or message.role if speaker is None else speaker
        metadata = {**message.metadata, **(metadata or {})}
    seconds, day = moment(now if said is None else said)
    return Draft(
        content=content,
        digest=digest_of(content),
        time=seconds,
        day=day,
        dated=said is not None,
        speaker=None if speaker is None else storable(speaker, "speaker"),
        session=None if session is None else storable(session, "session"),
        metadata=to_json(metadata or {}),
        key=None if key is None else storable(key, "key"),
        expires=None if ttl is None else now + ttl,
    )


def checksum(*values: object) -> int:
    """CRC-32 of texts, numbers and None."""
    return crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def storable(text: str, name: str) -> str:
    """`text`, if it can be written as UTF-8.

    Raises:
        MemoryInputError: It is no text, or holds half of a surrogate pair.
    """
    if not isinstance(text, str):
        raise MemoryInputError(f"{name} has to be a string, not a {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MemoryInputError(
            f"{name} holds a lone surrogate at {error.start}: it is no valid text"
        ) from error
    return text


def digest_of(text: str) -> bytes:
    """Sixteen bytes of the normalised text."""
    normal = " ".join(unicodedata.normalize("NFKC", text).split())
    return hashlib.blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def named_speaker(row_or_draft: Row | Draft) -> str | None:
    """The speaker when it is a name and not a role such as "user"."""
    speaker = row_or_draft.speaker
    return speaker if speaker and speaker.casefold() not in _ROLES else None


def space_path(namespace: Namespace) -> str:
    """A namespace as text in which a prefix of segments is a prefix of characters: ``"a","b",``."""
    return "".join(json.dumps(part) + "," for part in namespace)


def new_id(clock: Callable[[], float] = clocks.time) -> str:
    """A UUID of version 7 (RFC 9562) in hex: ordered by time, so that an index grows at its end."""
    number = int(clock() * 1000) << 80 | int.from_bytes(os.urandom(10))
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    return f"{number:032x}"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and 0 < value < 1e12  # 30,000 years; infinite is None


def to_json(metadata: Mapping[str, Any]) -> str:
    """Metadata as JSON text.

    Raises:
        MemoryInputError: It would not come back equal.
    """
    if not metadata:
        return "{}"
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise MemoryInputError(f"metadata has to be plain JSON data: {error}") from error
    except RecursionError as error:
        raise MemoryInputError("metadata is nested too deeply to be stored as JSON") from error
    if json.loads(text) != metadata:
        raise MemoryInputError("metadata would not come back equal: use lists, and dicts with text keys")
    return text
