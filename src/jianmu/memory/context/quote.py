"""Quoting that a text cannot break out of."""

from __future__ import annotations

import re

__all__ = ["quote"]

# Lone surrogates cannot be sent; the others are unseen by a reader, not by a model.
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def quote(text: str) -> str:
    """Return `text` with ``| `` before every line, whatever character ends it.

    Nothing in the text can end the quotation, because the mark is on each line and not around them. Unseen
    controls are left out, and ``<|``, which begins a chat template's token, becomes ``< |``.
    """
    lines = text.splitlines() or [""]
    return "\n".join("| " + _UNSEEN.sub("", line).replace("<|", "< |") for line in lines)
