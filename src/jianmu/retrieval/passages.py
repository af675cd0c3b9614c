"""Cuts a long text into passages, so that what stands deep inside it can be found."""

from __future__ import annotations

import re

__all__ = ["PASSAGE_WORDS", "split_passages", "word_count"]

PASSAGE_WORDS = 80
"""How long a passage may be; a text of at most one and a half times this stays whole."""

_SENTENCES = re.compile(r"[^\n.!?。！？；]*(?:[.!?。！？；]+[\"'”’)\]]*\s*|\n+|$)")
_UNITS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]|[^\W_]+"
)
_HARD = 4_000


def word_count(text: str) -> float:
    """Words, a character of a script without spaces counting as two thirds."""
    return sum(2 / 3 if len(unit) == 1 and unit > "\u0e00" else 1.0 for unit in _UNITS.findall(text))


def split_passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """`text` in passages of at most about `words` words, cut at sentence ends; together they are the text.

    A text that is not long comes back as one passage, a sentence without an end is cut hard.
    """
    if len(text) <= words * 1.5 or word_count(text) <= words * 1.5:
        return [text]
    passages: list[str] = []
    current: list[str] = []
    size = 0.0
    for sentence in _sentences(text, words):
        length = word_count(sentence)
        if current and size + length > words:
            passages.append("".join(current))
            current, size = [], 0.0
        current.append(sentence)
        size += length
    if current:
        passages.append("".join(current))
    whole = [passage for passage in passages if passage.strip()]
    return whole or [text]


def _sentences(text: str, words: int) -> list[str]:
    found: list[str] = []
    for match in _SENTENCES.finditer(text):
        sentence = match.group()
        while word_count(sentence[:_HARD]) > words * 1.5 or len(sentence) > _HARD:
            cut = _cut(sentence[:_HARD], words)
            found.append(sentence[:cut])
            sentence = sentence[cut:]
        if sentence:
            found.append(sentence)
    return found


def _cut(sentence: str, words: int) -> int:
    size = 0.0
    for unit in _UNITS.finditer(sentence):
        size += 2 / 3 if len(unit.group()) == 1 and unit.group() > "\u0e00" else 1.0
        if size >= words:
            return unit.end()
    return len(sentence)
