"""Puts items into the index and takes them out; what is new is collected and written in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jianmu.memory.long_term.engine.indexing import context_terms, index_text, slots_of
from jianmu.memory.long_term.engine.items import Draft, Row
from jianmu.memory.long_term.engine.tables import Space, Tables
from jianmu.retrieval.tokens import Analyzer

__all__ = ["Embed", "IndexWriter"]

Embed = Callable[[Row | Draft], Sequence[bytes | None]]
"""The vectors of a text's slots, in order."""


class IndexWriter:
    """Rows, passages and postings of one space.

    Args:
        tables: The open transaction.
        space: Claimed in it.
        analyzer: Splits texts into terms.
        embed: Gives the vectors of a text, ready made where possible.
    """

    def __init__(self, tables: Tables, space: Space, *, analyzer: Analyzer, embed: Embed) -> None:
        self._tables = tables
        self._space = space
        self._analyzer = analyzer
        self._embed = embed
        self._postings: dict[str, list[bytes]] = {}
        self._passages: list[tuple[int, int, bytes | None]] = []
        self._rows: dict[int, Row] = {}

    def finish(self) -> None:
        """Write what was collected; call once before the transaction ends."""
        self._flush()
        self._tables.save_space(self._space)

    def _index(self, row: Row, vectors: Sequence[bytes | None] | None = None) -> None:
        passages = index_text(self._analyzer, row, self._context(row))
        count = slots_of(len(passages))
        row.slot, row.passages = self._space.slots, count
        row.length = sum(passage.length for passage in passages)
        if vectors is None:
            vectors = self._embed(row)
        first = row.slot + count - len(passages)
        for slot, passage in enumerate(passages, start=first):
            for term, packed in passage.postings(slot):
                self._postings.setdefault(term, []).append(packed)
        self._passages += [(row.slot + at, row.id, vectors[at] if vectors else None) for at in range(count)]
        self._space.slots += count
        self._space.documents += len(passages)
        self._space.words += row.length

    def _unindex(self, row: Row) -> None:
        self._flush()
        passages = index_text(self._analyzer, row, self._context(row))
        first = row.slot + row.passages - len(passages)
        slots = {slot: passage.terms() for slot, passage in enumerate(passages, start=first)}
        self._tables.remove_postings(self._space, slots)
        self._tables.remove_passages(self._space, row.slot, row.passages)
        self._space.documents -= len(passages)
        self._space.words -= row.length

    def _unlink_index(self, row: Row) -> Row | None:
        """Take an item, and the one after it, out of the index; the latter has to be indexed anew."""
        after = None if row.after is None else self._tables.row(self._space, "id", row.after)
        if after is not None:
            self._vectors = self._tables.passage_vectors(self._space, after.slot, after.passages)
            self._unindex(after)
        self._unindex(row)
        return after

    def _reindex(self, row: Row) -> None:
        self._index(row, self._vectors)
        self._tables.update_row(row)

    def _context(self, row: Row) -> list[str]:
        if row.before is None:
            return []
        before = self._rows.get(row.before) or self._tables.row(self._space, "id", row.before)
        return [] if before is None else context_terms(self._analyzer, before.content)

    def _flush(self) -> None:
        """Write what was collected, before a statement that has to see it."""
        if self._rows:
            self._tables.insert_rows(self._rows.values())
            self._rows = {}
        if self._passages:
            self._tables.add_passages(self._space, self._passages)
            self._passages = []
        if self._postings:
            self._tables.add_postings(self._space, self._postings)
            self._postings = {}
