"""Builds the index anew, with another embedder or another way to split words.

Vectors are made first and kept in a table of their own, so that a killed run goes on where it stopped; then
one transaction replaces the index. Until it commits, everybody searches the old one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jianmu.memory.long_term.engine.embedding import token_vectors
from jianmu.memory.long_term.engine.indexing import embedding_key
from jianmu.memory.long_term.engine.items import Draft, Row
from jianmu.memory.long_term.engine.tables import Database, Space, Tables
from jianmu.memory.long_term.engine.writing import Writer
from jianmu.retrieval.embedders.base import Embedder
from jianmu.retrieval.tokens import ANALYZER_ID, Analyzer

if TYPE_CHECKING:
    from jianmu.retrieval.late.tokens import TokenEmbedder
    from jianmu.retrieval.late.words import WordVectors

__all__ = ["Reindexing", "progress_bar"]

_EMBEDDED_AT_ONCE = 128
_READ_AT_ONCE = 1_000

Progress = Callable[[int, int], None]
"""Called with the items done and the items there are."""
VectorsOf = Callable[[Sequence[Row | Draft]], Mapping[bytes, Sequence[bytes | None]]]


class Reindexing:
    """One rebuild.

    Args:
        database: Whose index.
        embedder: The one to build with; None drops the vectors.
        vectors_of: Quantized vectors of texts, by `embedding_key`.
        analyzer: Splits texts into terms.
        progress: Told about each step.
        words: Vectors of single words, kept as well.
        late: Makes token vectors; None drops them.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None,
        vectors_of: VectorsOf,
        *,
        analyzer: Analyzer,
        progress: Progress,
        words: WordVectors | None = None,
        late: TokenEmbedder | None = None,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._vectors_of = vectors_of
        self._analyzer = analyzer
        self._progress = progress
        self._words = words
        self._late = late
        self._met: list[tuple[int, bytes]] = []

    def run(self) -> int:
        """Rebuild; how many items were indexed."""
        if self._embedder is not None or self._late is not None:
            self._stage()
        return self._database.write(self._swap)

    def _stage(self) -> None:
        name = "" if self._embedder is None else self._embedder.id
        self._database.write(lambda tables: self._begin(tables, name))
        spaces = self._database.read(lambda tables: tables.spaces("", deep=True))
        total = self._database.read(_count)
        done = 0
        for space in spaces:
            above = -1
            while rows := self._page(space, above):
                if self._embedder is not None:
                    self._stage_rows(space, rows)
                self._stage_tokens(space, rows)
                above = rows[-1].id
                done += len(rows)
                self._progress(done, max(total, done))

    def _page(self, space: Space, above: int) -> Sequence[Row]:
        return self._database.read(lambda tables: tables.everything(space, above, _EMBEDDED_AT_ONCE))

    def _begin(self, tables: Tables, name: str) -> None:
        if tables.setting("staging") != name:
            tables.run("DELETE FROM memory_staged")
            tables.set_setting("staging", name)

    def _stage_rows(self, space: Space, rows: Sequence[Row]) -> None:
        staged = self._database.read(lambda tables: _staged(tables, space, [row.digest for row in rows]))
        missing = [row for row in rows if row.digest not in staged]
        if not missing:
            return
        vectors = self._vectors_of(missing)
        if self._words is not None:
            self._met += self._words.to_save((row.content for row in missing), lambda ids: {})
        values = [
            (space.id, row.digest, b"".join(v or b"" for v in vectors[embedding_key(row)])) for row in missing
        ]
        sql = "INSERT INTO memory_staged (space, digest, vectors) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._database.write(lambda tables: tables.run_many(sql, values))

    def _stage_tokens(self, space: Space, rows: Sequence[Row]) -> None:
        """Token vectors stand beside those of another embedder until the swap."""
        late = self._late
        if late is None:
            return
        known = self._database.read(
            lambda tables: tables.tokens_known(space, late.id, [row.digest for row in rows])
        )
        made = token_vectors([row for row in rows if row.digest not in known], late)
        tokens = {row.digest: made[embedding_key(row)] for row in rows if row.digest not in known}
        self._database.write(lambda tables: tables.add_tokens(space, late.id, tokens))

    def _swap(self, tables: Tables) -> int:
        tables.set_setting("analyzer", ANALYZER_ID)
        tables.set_setting("embedder", None if self._embedder is None else self._embedder.id)
        tables.set_setting("dimension", None if self._embedder is None else str(self._embedder.dimension))
        tables.set_setting("token_embedder", None if self._late is None else self._late.id)
        tables.run(
            "DELETE FROM memory_token WHERE model <> ?", ("" if self._late is None else self._late.id,)
        )
        tables.reset_vectors(None if self._embedder is None else self._embedder.dimension)
        total = sum(
            self._swap_space(tables, tables.claim(space.path)) for space in tables.spaces("", deep=True)
        )
        tables.run("DELETE FROM memory_staged")
        tables.set_setting("staging", None)
        tables.run("DELETE FROM memory_word")
        tables.add_words(self._met)
        return total

    def _swap_space(self, tables: Tables, space: Space) -> int:
        for table in ("passage", "posting"):
            tables.run(f"DELETE FROM memory_{table} WHERE space = ?", (space.id,))  # noqa: S608 - literal names
        space.slots = space.documents = space.words = 0
        space.segments = []
        space.epoch += 1
        count, above = 0, -1
        while rows := tables.everything(space, above, _READ_AT_ONCE):
            ready = self._ready(tables, space, rows)
            if self._late is not None:  # recorded since the token vectors were made
                known = tables.tokens_known(space, self._late.id, [row.digest for row in rows])
                lacking = [row for row in rows if row.digest not in known]
                made = token_vectors(lacking, self._late)
                tables.add_tokens(
                    space, self._late.id, {row.digest: made[embedding_key(row)] for row in lacking}
                )
            writer = Writer(
                tables,
                space,
                analyzer=self._analyzer,
                embed=lambda row, ready=ready: ready.get(row.digest, ()),  # type: ignore[misc] # bound now
                now=0.0,
                new_id=str,
            )
            for row in rows:
                writer.reindex(row)
            writer.finish()
            above = rows[-1].id
            count += len(rows)
        return count

    def _ready(
        self, tables: Tables, space: Space, rows: Sequence[Row]
    ) -> Mapping[bytes, Sequence[bytes | None]]:
        if self._embedder is None:
            return {}
        size = self._embedder.dimension + 4
        staged = _staged(tables, space, [row.digest for row in rows])
        ready: dict[bytes, Sequence[bytes | None]] = {
            digest: [packed[at : at + size] for at in range(0, len(packed), size)]
            for digest, packed in staged.items()
        }
        changed = [row for row in rows if row.digest not in ready]  # recorded since the vectors were made
        fresh = self._vectors_of(changed)
        ready.update((row.digest, fresh[embedding_key(row)]) for row in changed if fresh)
        return ready


@contextmanager
def progress_bar(shown: bool) -> Iterator[Progress]:
    """A bar on standard error, or nothing."""
    if not shown:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("Reindexing memories", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _count(tables: Tables) -> int:
    return int(tables.all("SELECT count(*) FROM memory_item")[0][0])


def _staged(tables: Tables, space: Space, digests: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(digests), 400):
        part = digests[start : start + 400]
        marks = ", ".join("?" * len(part))
        sql = f"SELECT digest, vectors FROM memory_staged WHERE space = ? AND digest IN ({marks})"  # noqa: S608 - marks
        found.update((bytes(digest), bytes(packed)) for digest, packed in tables.all(sql, (space.id, *part)))
    return found
