"""Quoting that a text cannot break out of."""

from __future__ import annotations

__all__ = ["quote"]


def quote(text: str) -> str:
    """Return `text` with ``| `` before every line, whatever character ends it.

    Nothing in the text can end the quotation, because the mark is on each line and not around them.
    """
    return "\n".join(f"| {line}" for line in text.splitlines() or [""])
