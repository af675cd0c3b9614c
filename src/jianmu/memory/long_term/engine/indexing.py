"""What one text puts into the index: its passages, their terms, the texts to embed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jianmu.memory.long_term.engine.items import Draft, Row, named_speaker
from jianmu.retrieval.bm25 import pack_terms
from jianmu.retrieval.dates import date_mentions, date_terms, day_terms
from jianmu.retrieval.passages import split_passages
from jianmu.retrieval.stopwords import ENGLISH
from jianmu.retrieval.tokens import Analyzer

__all__ = ["IndexedPassage", "context_terms", "embedding_key", "index_text", "slots_of", "texts_to_embed"]

CONTEXT_TERMS = 10
"""How many terms of the message before belong to a short message's context."""
CONTEXT_UP_TO = 25
"""The length in words up to which a message has a context."""


@dataclass(slots=True)
class IndexedPassage:
    """One passage's terms: how often in the text, how often in the context, which surface forms."""

    own: dict[str, int] = field(default_factory=dict)
    context: dict[str, int] = field(default_factory=dict)
    forms: dict[str, int] = field(default_factory=dict)
    length: int = 0

    def terms(self) -> set[str]:
        """Every term that has a posting."""
        return {*self.own, *self.context}

    def postings(self, slot: int) -> list[tuple[str, bytes]]:
        """Each term with its packed posting."""
        return pack_terms(slot, self.own, self.context, self.forms, self.length)


def index_text(analyzer: Analyzer, row: Row | Draft, before: Sequence[str] = ()) -> list[IndexedPassage]:
    """The passages of a text in order.

    Args:
        analyzer: Splits into terms.
        row: The text, its speaker and its day.
        before: Terms of the message before, from `context_terms`; used when the text is short.
    """
    speaker = named_speaker(row)
    named = [] if speaker is None else analyzer.terms(speaker)
    day = day_terms(row.day)
    passages = []
    for text in split_passages(row.content):
        own, forms, length = analyzer.tally(text)
        for term in named:
            own[term.text] = own.get(term.text, 0) + 1
            forms[term.text] = forms.get(term.text, 0) | term.form
        for name in (*day, *_dates(text)):
            own[name] = own.get(name, 0) + 1
            forms.setdefault(name, 0)
        passage = IndexedPassage(own, {}, forms, length)
        passages.append(passage)
    if len(passages) == 1 and passages[0].length <= CONTEXT_UP_TO:
        for name in before:
            passages[0].context[name] = passages[0].context.get(name, 0) + 1
    return passages


def context_terms(analyzer: Analyzer, content: str) -> list[str]:
    """The last terms of a message that a short answer to it takes as its context."""
    tail = content[-CONTEXT_TERMS * 40 :]
    names = [term.text for term in analyzer.terms(tail) if term.weight and term.text not in ENGLISH]
    return names[-CONTEXT_TERMS:]


def slots_of(passages: int) -> int:
    """How many slots a text takes: one, or one for the whole and one for each passage."""
    return 1 if passages == 1 else passages + 1


def embedding_key(row: Row | Draft) -> bytes:
    """Equal for texts that the embedder sees as the same."""
    return row.digest + (named_speaker(row) or "").encode()


def texts_to_embed(row: Row | Draft) -> list[str]:
    """The passages as the embedder shall see them; a named speaker stands before a short text."""
    passages = split_passages(row.content)
    speaker = named_speaker(row)
    if len(passages) == 1 and speaker is not None:
        return [f"{speaker}: {row.content}"]
    return passages


def _dates(text: str) -> list[str]:
    return [name for mention in date_mentions(text) for name in date_terms(mention)]
