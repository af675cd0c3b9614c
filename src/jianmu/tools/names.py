"""Names that every provider takes, made from any name, the same way each time."""

from __future__ import annotations

import hashlib
import re

__all__ = ["legal_name"]

_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


def legal_name(name: str) -> str:
    """Return `name` if all providers take it, else what is legal of it with a short digest of the whole.

    The digest keeps two names apart that differ only where they are illegal, whatever else is in the set.
    Limits: ``[A-Za-z_][A-Za-z0-9_-]*``, 64 characters (OpenAI, Anthropic, Gemini).
    """
    if _LEGAL.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    kept = _ILLEGAL.sub("_", name).strip("_-")[:48]
    if not kept or not _LEGAL.match(kept):
        kept = f"tool_{kept}".rstrip("_")
    return f"{kept}_{digest}"
