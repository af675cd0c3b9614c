"""File names for any thread id: short, portable, and never the same for two ids.

An id such as ``session-42`` (lower-case ASCII letters, digits, "-" and "_", at most 64 of them, no device
name of Windows) is its own name. Any other is ``<what is readable of it>~<40 hex digits of its SHA-256>``,
which no id of the first kind can be, as that has no "~". The name proves nothing: each record holds the id.
"""

from __future__ import annotations

import hashlib
import re

__all__ = ["file_stem"]

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNREADABLE = re.compile(r"[^a-z0-9_]+")
_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")


def file_stem(thread_id: str) -> str:
    """Return the file name without extension: at most 73 ASCII characters, all lower-case."""
    if _PLAIN.fullmatch(thread_id) and not _DEVICES.fullmatch(thread_id):
        return thread_id
    readable = _UNREADABLE.sub("-", thread_id[:200].lower()).strip("-")[:32] or "thread"
    digest = hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return f"{readable}~{digest}"
