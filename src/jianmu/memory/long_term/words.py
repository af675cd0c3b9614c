"""Matching by words without an index: exact substring first, then the share of the query's words found.

Both sides are folded alike: width and compatibility forms (NFKC), Latin accents, case. Chinese, Japanese and
Korean have no spaces, so a run of them counts as its pairs of neighbours and, at a lower weight, its single
characters. An identifier counts whole and in parts (``getUserById``, ``OPENAI_API_KEY``, ``3.10``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Text", "fold", "match_score"]

_CJK = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD_CHARACTER = rf"(?:(?![{_CJK}])[^\W_])"
_TOKEN = re.compile(rf"[{_CJK}]+|{_WORD_CHARACTER}+(?:[-._'’]+{_WORD_CHARACTER}+)*")
_CJK_RUN = re.compile(rf"[{_CJK}]")
_SEPARATOR = re.compile(r"[-._'’]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LATIN_ACCENT = re.compile("[\u0300-\u036f]")
# Suffix, what replaces it, and the fewest letters that must stay.
_SUFFIXES = (
    ("ies", "y", 2),
    ("ing", "", 2),
    ("ed", "", 2),
    ("es", "", 2),
    ("s", "", 2),
    ("e", "", 5),
    ("ation", "", 5),
)

_PHRASE = 1.0  # the whole query, at word borders
_INSIDE = 0.95  # the whole query, inside a word
_OVERLAP = 0.9  # times the share of the query's words
_FORM = 0.9  # a word that matches only by a stripped form
_PARTS = 0.8  # an identifier that matches only in parts
_SINGLE = 0.3  # one CJK character of a longer run


def fold(text: str) -> str:
    """Fold width, compatibility forms and Latin accents; case stays, for it shows an identifier's parts."""
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFKC", _LATIN_ACCENT.sub("", decomposed))


@dataclass(frozen=True, slots=True)
class Text:
    """A text made ready to be matched; keep it to match many queries."""

    folded: str
    wholes: frozenset[str]
    forms: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Text:
        """Fold and split `text` once."""
        folded = fold(text)
        wholes: set[str] = set()
        for token in _TOKEN.findall(folded):
            if _CJK_RUN.match(token):
                wholes.update(token)
                wholes.update(_pairs(token))
            else:
                wholes.add(_whole(token))
                wholes.update(_parts(token))
        return cls(
            folded.casefold(), frozenset(wholes), frozenset(form for w in wholes for form in _forms(w))
        )


def match_score(query: str, text: Text) -> float:
    """Return how well `text` answers `query`, from 0.0 (not at all) to 1.0 (contains it)."""
    folded = fold(query).strip()
    if not folded:
        return 0.0
    needle = folded.casefold()
    at = text.folded.find(needle)
    if at >= 0:
        return _PHRASE if _at_word_borders(text.folded, needle) else _INSIDE
    found = wanted = 0.0
    for weight, strength in _units(folded, text):
        wanted += weight
        found += weight * strength
    return _OVERLAP * found / wanted if wanted else 0.0


def _at_word_borders(text: str, needle: str) -> bool:
    before = rf"(?<!{_WORD_CHARACTER})" if re.match(_WORD_CHARACTER, needle[0]) else ""
    after = rf"(?!{_WORD_CHARACTER})" if re.match(_WORD_CHARACTER, needle[-1]) else ""
    return re.search(before + re.escape(needle) + after, text) is not None


def _units(folded_query: str, text: Text) -> Iterator[tuple[float, float]]:
    """Yield the weight of each different word of the query and how strongly `text` has it."""
    for token in dict.fromkeys(_TOKEN.findall(folded_query)):
        if not _CJK_RUN.match(token):
            yield 1.0, _strength(token, text)
            continue
        for single in dict.fromkeys(token):
            yield (_SINGLE if len(token) > 1 else 1.0), float(single in text.wholes)
        for pair in dict.fromkeys(_pairs(token)):
            yield 1.0, float(pair in text.wholes)


def _strength(token: str, text: Text) -> float:
    whole = _whole(token)
    if whole in text.wholes:
        return 1.0
    if not text.forms.isdisjoint(_forms(whole)):
        return _FORM
    parts = [] if token[0].isdigit() else _parts(token)
    matched = sum(not text.forms.isdisjoint(_forms(part)) for part in parts)
    return _PARTS * matched / len(parts) if parts else 0.0


def _whole(token: str) -> str:
    return _SEPARATOR.sub("_", token).casefold()


def _parts(token: str) -> list[str]:
    parts = [part for piece in _SEPARATOR.split(token) for part in _CAMEL.split(piece)]
    return [part.casefold() for part in parts] if len(parts) > 1 else []


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _forms(word: str) -> Iterator[str]:
    yield word
    for suffix, instead, fewest in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= fewest:
            yield word[: -len(suffix)] + instead
