"""What reading and writing share: the open database, the embedder, how a memory is looked up."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jianmu.memory.long_term.engine.agreement import choose, choose_late
from jianmu.memory.long_term.engine.embedding import embed_texts
from jianmu.memory.long_term.engine.items import Row, new_id, storable
from jianmu.memory.long_term.engine.tables import Database, Space, Tables
from jianmu.retrieval.embedders.base import Embedder, EmbedderChoice
from jianmu.retrieval.late.tokens import TokenEmbedderChoice
from jianmu.retrieval.rerank import Reranker
from jianmu.retrieval.tokens import Analyzer

if TYPE_CHECKING:
    from jianmu.retrieval.late.words import WordVectors

__all__ = ["OpenedMemory"]


def _has_items(tables: Tables) -> bool:
    return bool(tables.all("SELECT 1 FROM memory_item LIMIT 1"))


class OpenedMemory:
    """An open database with all that works on it; `EngineMemory` tells the arguments."""

    def __init__(
        self,
        database: Database,
        *,
        embedder: EmbedderChoice,
        late_interaction: TokenEmbedderChoice = "auto",
        reranker: Reranker | None = None,
        clock: Callable[[], float] = clocks.time,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        self._database = database
        self._reranker = reranker
        self._clock = clock
        self._new_id = new_id
        self._analyzer = Analyzer()
        recorded = database.read(lambda tables: tables.setting("embedder"))
        self.embedder = choose(embedder, recorded, words_only=recorded is None and database.read(_has_items))
        recorded = database.read(lambda tables: tables.setting("token_embedder"))
        self.token_embedder = choose_late(late_interaction, recorded)
        self._words: tuple[Embedder | None, WordVectors | None] = (None, None)

    def _word_vectors(self) -> WordVectors | None:
        """Vectors of single words by the present embedder, if it is one that knows words."""
        embedder = self.embedder
        if self._words[0] is not embedder:
            self._words = (embedder, self._new_word_vectors(embedder))
        return self._words[1]

    def _new_word_vectors(self, embedder: Embedder | None) -> WordVectors | None:
        if embedder is None or not getattr(embedder, "embeds_words", False):
            return None
        from jianmu.retrieval.late.words import WordVectors

        return WordVectors(partial(embed_texts, embedder))

    def _find(
        self, tables: Tables, path: str, memory_id: str, now: float, *, claim: bool = False
    ) -> tuple[Space | None, Row | None]:
        """The live item with this id or key, and its space; `claim` holds it against other writers."""
        for space in tables.spaces(path, deep=False):
            if claim:
                space = tables.claim(path)
            name = storable(memory_id, "memory_id")
            row = tables.row(space, "uid", name) or tables.row_of_key(space, name)
            if row is not None and (row.expires is None or row.expires > now):
                return space, row
        return None, None
