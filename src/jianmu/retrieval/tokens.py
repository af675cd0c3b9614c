"""From text to the terms that the word index knows: one rule for what is stored and what is asked.

A word gives its stem (English) with the surface form beside it; an identifier gives its whole and its parts;
a run of a script without spaces gives its characters and their bigrams. Text is never query syntax.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from jianmu.retrieval.han import HanForms
from jianmu.retrieval.stopwords import ENGLISH

__all__ = ["ANALYZER_ID", "Analyzer", "Term"]

ANALYZER_ID = "words-1/snowball-3"
"""Names the rule; an index made by another rule has to be rebuilt."""

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, bopomofo, Han, Hangul (particles cling
# to words).
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)
# Marks that belong to a word though they are no letters: Latin, Hebrew, Arabic, Indic.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_SYMBOL = "\u2190-\u2bff\U0001f000-\U0001faff"
_PIECES = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<word>_*{_LETTER}+(?:(?:['\u2019.\-\u2010\u2011/:@]|_+){_LETTER}+)*)"
    rf"|(?P<symbol>[{_SYMBOL}])"
)
_ASCII_PIECES = re.compile(r"_*[A-Za-z0-9]+(?:(?:['.\-/:@]|_+)[A-Za-z0-9]+)*")  # the same for plain ASCII
_HAN = re.compile("[\u3400-\u9fff]")
_JOINERS = re.compile(r"['\u2019.\-\u2010\u2011/:@_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_POSSESSIVE = re.compile(r"['\u2019][sS]?$")
_CONTRACTION = re.compile(r"[^\W\d_]+['\u2019][a-zA-Z]{1,2}")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_NUMBER = re.compile(r"\d+(?:[.:/\-]\d+)+")
_SNOWBALL = "3.1."
_LONGEST = 64
"""Longer "words" are data (base64, hashes): their first characters stand for them."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term at one place of a text.

    Attributes:
        text: What is looked up: a stem, a whole identifier, a character or a bigram.
        form: One of eight bits drawn from the surface form; it tells "news" from "new" without storing
        either. weight: 1 for a unit of length, 0 for a second view of the same place (whole identifier,
        single character).
    """

    text: str
    form: int
    weight: int = 1


class _Word(NamedTuple):
    """The terms of one place in a text, and how much longer they make it."""

    terms: tuple[Term, ...]
    length: int


class Analyzer:
    """Turns text into terms; safe to share between threads, remembers the words it has seen."""

    id = ANALYZER_ID

    def __init__(self, cache_size: int = 50_000) -> None:
        self._words: dict[str, _Word] = {}
        self._cache_size = cache_size
        self._lock = threading.Lock()
        self._han: HanForms | None = None
        self._stemmer: Callable[[str], str] | None = None

    def terms(self, text: str) -> list[Term]:
        """All terms of `text` in order, with repetitions."""
        return [term for word in self._scan(text) for term in word.terms]

    def tally(self, text: str) -> tuple[dict[str, int], dict[str, int], int]:
        """For each term of `text` how often and in which forms, and the length of `text`."""
        counts: dict[str, int] = {}
        forms: dict[str, int] = {}
        length = 0
        for word in self._scan(text):
            length += word.length
            for term in word.terms:
                name = term.text
                counts[name] = counts.get(name, 0) + 1
                forms[name] = forms.get(name, 0) | term.form
        return counts, forms, length

    def query_terms(self, text: str) -> dict[str, int]:
        """The terms to look up for a question, each with the form bits asked for; stop words are left out.

        A question of nothing but stop words keeps them.
        """
        wanted: dict[str, int] = {}
        stopped: dict[str, int] = {}
        for term in self.terms(text):
            target = stopped if term.text in ENGLISH else wanted
            target[term.text] = target.get(term.text, 0) | term.form
        return wanted or stopped

    def other_forms(self, text: str) -> dict[str, int]:
        """Terms of a Chinese question in its simplified and its traditional form, beside its own."""
        if not _HAN.search(text):
            return {}
        with self._lock:
            if self._han is None:
                self._han = HanForms()
        written = (self._han.simplified(text), self._han.traditional(text))
        found = {
            name: form for other in written if other != text for name, form in self.query_terms(other).items()
        }
        return {name: form for name, form in found.items() if name not in self.query_terms(text)}

    def length(self, terms: Iterable[Term]) -> int:
        """How long a text is, in words (or bigrams) that are no stop words."""
        return sum(term.weight for term in terms if term.text not in ENGLISH)

    def stem(self, word: str) -> str:
        """The term of a single plain word."""
        return self._stem(_fold(word)[:_LONGEST])

    def _scan(self, text: str) -> Iterator[_Word]:
        known = self._words
        if text.isascii():
            for piece in _ASCII_PIECES.findall(text):
                yield known.get(piece) or self._learn(piece)
            return
        for match in _PIECES.finditer(unicodedata.normalize("NFKC", text)):
            piece = match.group()
            if match.lastgroup == "unspaced":
                yield _word_of(_ngrams(piece))
            elif match.lastgroup == "symbol":
                yield _word_of([Term(piece, 1)])
            else:
                yield known.get(piece) or self._learn(piece)

    def _learn(self, piece: str) -> _Word:
        if piece.isalpha() and piece.isascii() and piece.islower():  # most words: nothing to part or to fold
            word = _word_of([self._term(piece)])
        else:
            word = _word_of(term for term in self._word(piece) if term.text)  # an accent alone is none
        with self._lock:
            if len(self._words) >= self._cache_size:
                self._words.clear()
            self._words[piece] = word
        return word

    def _word(self, piece: str) -> Iterator[Term]:
        piece = _POSSESSIVE.sub("", piece.strip("_"))
        if _NUMBER.fullmatch(piece):  # 3.10 is not 310
            yield Term(piece[:_LONGEST], _form(piece), 0)
            for part in _JOINERS.split(piece):
                yield self._term(part)
            return
        parts = [part for run in _JOINERS.split(piece) for part in _CAMEL.split(run) if part]
        if len(parts) > 1 and not _CONTRACTION.fullmatch(piece):
            yield self._term(_JOINERS.sub("", piece), weight=0)
        for part in parts:
            yield self._term(part)

    def _term(self, word: str, weight: int = 1) -> Term:
        surface = _fold(word)[:_LONGEST]
        return Term(self._stem(surface), _form(surface), weight)

    def _stem(self, word: str) -> str:
        if len(word) < 3 or not (word.isascii() and word.isalpha()):
            return word
        with self._lock:  # the stemmer keeps state while it works
            if self._stemmer is None:
                self._stemmer = _english_stemmer()
            return self._stemmer(word)


def _word_of(terms: Iterable[Term]) -> _Word:
    known = tuple(terms)
    return _Word(known, _length(known))


def _length(terms: Iterable[Term]) -> int:
    return sum(term.weight for term in terms if term.text not in ENGLISH)


def _english_stemmer() -> Callable[[str], str]:
    """Snowball's English stemmer: in C where PyStemmer is installed in the same version, else in Python.

    Both are generated from one source, so that stored stems agree.
    """
    try:
        import Stemmer
    except ImportError:
        pass
    else:
        if Stemmer.version().startswith(_SNOWBALL):
            in_c: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
            return in_c
    from snowballstemmer.english_stemmer import EnglishStemmer

    in_python: Callable[[str], str] = EnglishStemmer().stemWord
    return in_python


def _fold(word: str) -> str:
    """Casefold and drop accents (é = e, ä = a); Hangul and kana stay whole."""
    word = word.casefold()
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))


def _ngrams(run: str) -> Iterator[Term]:
    run = run.casefold()
    if len(run) == 1:
        yield Term(run, 1)
        return
    for at, character in enumerate(run):
        yield Term(character, 1, 0)
        if at + 1 < len(run):
            yield Term(run[at : at + 2], 1)


def _form(surface: str) -> int:
    return 1 << (crc32(surface.encode("utf-8", "surrogatepass")) & 7)
