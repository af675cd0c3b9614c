"""Foreign text on a terminal."""

from __future__ import annotations

import unicodedata

from rich.markup import escape

__all__ = ["shown"]


def shown(text: str) -> str:
    """Return `text` safe for a terminal: control characters are left out, markup is plain text."""
    return escape("".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs")))
