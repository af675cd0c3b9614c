"""The word index in the tables: found, added and removed by the statements that both databases share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from jianmu.memory.long_term.engine.segments import (
    LAST,
    PostingRow,
    Segment,
    absorbed,
    pack_rows,
    postings_in,
    unpack_row,
    without,
)
from jianmu.memory.long_term.engine.spaces import Space
from jianmu.memory.long_term.engine.statements import Statements, marks, parts

__all__ = ["WordTables"]

_HERE = "FROM memory_posting WHERE space = ? AND segment"


class WordTables(Statements):
    """Postings in merged segments, see `segments`."""

    @abstractmethod
    def posting_rows(
        self, space: Space, places: Sequence[tuple[int, str, int]]
    ) -> list[tuple[int, PostingRow]]:
        """For each (segment, term, slot) the last row of the segment whose key is not above it.

        Returns:
            (index of the place, row); a place before the first row has none.
        """

    def postings(self, space: Space, terms: Iterable[str]) -> dict[str, list[bytes]]:
        """Packed postings of the terms that occur."""
        wanted = list(terms)
        places = [(one.start, term, LAST) for one in space.segments if one.rows > 1 for term in wanted]
        found: dict[str, list[bytes]] = {}
        for at, (name, first, row) in self.posting_rows(space, places):
            segment, term, _ = places[at]
            rows = [row]
            if first and name == term:
                sql = f"SELECT entries {_HERE} = ? AND term = ? AND first < ?"
                rows += [earlier for (earlier,) in self.all(sql, (space.id, segment, term, first))]
            _collect(found, rows, [term])
        for part in parts(one.start for one in space.segments if one.rows == 1):
            sql = f"SELECT entries {_HERE} IN ({marks(part)})"
            _collect(found, [row for (row,) in self.all(sql, (space.id, *part))], wanted)
        return found

    def add_postings(self, space: Space, postings: Mapping[str, Sequence[bytes]]) -> None:
        """Add packed postings as a segment; their slots are above every slot in the index."""
        count = sum(map(len, postings.values()))
        if not count:
            return
        joined = {term: b"".join(some) for term, some in postings.items()}
        start = min(int.from_bytes(some[:4], "little") for some in joined.values())
        at = absorbed(space.segments, count)
        if at < len(space.segments):
            older = space.segments[at:]
            start, count = older[0].start, count + sum(one.postings for one in older)
            joined = self._taken_out(space, older, joined)
        rows = list(pack_rows(joined))
        self.run_many(
            "INSERT INTO memory_posting (space, segment, term, first, entries) VALUES (?, ?, ?, ?, ?)",
            [(space.id, start, *row) for row in rows],
        )
        space.segments[at:] = [Segment(start, count, len(rows))]

    def remove_postings(self, space: Space, slots: Mapping[int, Iterable[str]]) -> None:
        """Take these slots out of the postings of these terms."""
        for slot, terms in slots.items():
            segment = space.segment_of(slot)
            if segment is None:
                continue
            names = sorted(terms)
            located = self.posting_rows(space, [(segment.start, name, slot) for name in names])
            affected: dict[tuple[str, int], tuple[bytes, list[str]]] = {}
            for at, (term, first, row) in located:
                affected.setdefault((term, first), (row, []))[1].append(names[at])
            where = f"{_HERE} = ? AND term = ? AND first = ?"
            self.run_many(
                f"DELETE {where}",
                [(space.id, segment.start, *key) for key in affected],
            )
            left = [(key, without(row, some, slot)) for key, (row, some) in affected.items()]
            self.run_many(
                "INSERT INTO memory_posting (space, segment, term, first, entries) VALUES (?, ?, ?, ?, ?)",
                [(space.id, segment.start, row[0], key[1], row[1]) for key, row in left if row is not None],
            )

    def _taken_out(
        self, space: Space, older: Sequence[Segment], newest: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Postings of the last segments, taken out of the table, and of the newest one behind them."""
        merged: dict[str, list[bytes]] = {}
        sql = f"SELECT entries {_HERE} = ? ORDER BY term, first"
        for segment in older:
            for (row,) in self.all(sql, (space.id, segment.start)):
                for term, entries in unpack_row(row).items():
                    merged.setdefault(term, []).append(entries)
        for term, entries in newest.items():
            merged.setdefault(term, []).append(entries)
        self.run(f"DELETE {_HERE} >= ?", (space.id, older[0].start))
        return {term: b"".join(some) for term, some in merged.items()}


def _collect(found: dict[str, list[bytes]], rows: Iterable[bytes], terms: Sequence[str]) -> None:
    for row in rows:
        for term in terms:
            if some := postings_in(row, term):
                found.setdefault(term, []).append(some)
