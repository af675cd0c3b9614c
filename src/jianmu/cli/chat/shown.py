"""Foreign text on a terminal."""

from __future__ import annotations

import unicodedata

from rich.markup import escape

__all__ = ["shown"]

_KEPT = "\n\t\u200c\u200d"  # Persian, Hindi and emoji are written with the two joiners


def shown(text: str) -> str:
    """Return `text` safe for a terminal: what controls or hides is left out, markup is plain text."""
    return escape("".join(c for c in text if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs")))
