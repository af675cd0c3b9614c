"""Which way of writing a text uses: with spaces between the words, or without."""

from __future__ import annotations

import re

__all__ = ["UNSPACED", "has_unspaced"]

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\U00020000-\U000323af"
)
"""Thai, Lao, Myanmar, Khmer, kana, Han, Hangul (particles cling to words), for a character class."""

_UNSPACED = re.compile(f"[{UNSPACED}]")


def has_unspaced(text: str) -> bool:
    """Whether a script without spaces occurs (Chinese, Japanese, Korean, Thai, ...)."""
    return _UNSPACED.search(text) is not None
