"""What pieces of text cost on average, measured with each vocabulary on text that no test uses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["BARE", "BEYOND", "FOREIGN_SHARE", "FOREIGN_WORDS", "MARKED", "PUNCTUATION", "RATES", "SPACED"]

RATES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "o200k_base": {
            "han": 0.73,
            "kana": 0.70,
            "hangul": 0.50,
            "symbol": 1.65,
            "fullwidth": 0.95,
            "cyrillic": 0.24,
            "letters": 0.33,
            "rare": 1.5,
            "accent": 0.1,
            "foreign": 1.06,
        },
        "cl100k_base": {
            "han": 1.2,
            "kana": 0.83,
            "hangul": 0.86,
            "symbol": 2.45,
            "fullwidth": 0.95,
            "cyrillic": 0.44,
            "letters": 0.88,
            "rare": 2.0,
            "accent": 0.7,
            "foreign": 1.25,
        },
    }
)
"""Tokens per character by script; ``accent`` is added for an accented Latin letter, ``foreign`` multiplies
the words of a text in a European language other than English."""

# Tokens of a Latin word by its number of letters; both vocabularies agree.
# fmt: off
SPACED: tuple[float, ...] = (
    1, 1, 1, 1.01, 1.02, 1.03, 1.04, 1.11, 1.12,
    1.15, 1.24, 1.24, 1.5, 1.4, 1.5, 1.6, 2.5,
)
"""After a space."""
BARE: tuple[float, ...] = (
    1, 1, 1.01, 1.05, 1.12, 1.12, 1.22, 1.32, 1.65,
    1.7, 2.1, 2.1, 2.4, 3.0, 3.1, 3.3, 3.9,
)
"""After a letter, a digit or nothing."""
MARKED: tuple[float, ...] = (
    1, 1.04, 1.2, 1.2, 1.17, 1.32, 1.43, 1.7, 1.8,
    2.1, 2.2, 2.7, 2.7, 3.4, 3.4, 3.8, 3.9,
)
"""With a mark before it, as in ``(name``."""
BEYOND = 0.35
"""Tokens per letter beyond the tables."""

PUNCTUATION: tuple[float, ...] = (1, 1, 1, 1.03, 1.16, 1.27, 1.64, 2.3, 3.3)
"""Tokens of a run of punctuation by its length."""

FOREIGN_WORDS = frozenset(
    {
        "al", "auf", "che", "com", "con", "da", "das", "de", "del", "della", "dem", "den",
        "der", "des", "di", "du", "ein", "eine", "el", "en", "est", "et", "för", "het",
        "ik", "il", "ist", "je", "la", "las", "le", "les", "los", "mit", "não", "nicht",
        "och", "os", "para", "por", "pour", "que", "qui", "se", "sich", "sie", "sont", "su",
        "sul", "um", "uma", "un", "una", "und", "une", "von", "zu",
    }
)
"""Small words of European languages that English has not."""
# fmt: on
FOREIGN_SHARE = 12
"""A text is foreign when one word in so many is among them."""
