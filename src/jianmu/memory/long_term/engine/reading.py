"""What is read: retrieve, get, list, history; each on one view of the database."""

from __future__ import annotations

import builtins
from functools import partial
from typing import Any

from jianmu.memory.long_term.base import LongTermMemoryRetrieved, Namespace, RetrievedMemory
from jianmu.memory.long_term.capabilities import refuse_unknown
from jianmu.memory.long_term.engine.agreement import require_agreement
from jianmu.memory.long_term.engine.embedding import ask, embed_texts
from jianmu.memory.long_term.engine.filters import Filter
from jianmu.memory.long_term.engine.items import space_path
from jianmu.memory.long_term.engine.opened import OpenedMemory
from jianmu.memory.long_term.engine.results import history_entry, hit, scored_hit
from jianmu.memory.long_term.engine.retrieving import Options, Retrieval
from jianmu.memory.long_term.engine.tables import Tables
from jianmu.memory.long_term.engine.times import When, from_seconds
from jianmu.memory.long_term.inputs import check_page, namespace_tuple
from jianmu.memory.long_term.rendering import render_retrieved

__all__ = ["Reading"]


class Reading(OpenedMemory):
    """The reading half of `EngineMemory`."""

    def retrieve(
        self,
        query: str,
        *,
        limit: int = 5,
        namespace: Namespace | None = None,
        deep: bool = False,
        filters: Filter | None = None,
        since: When | None = None,
        until: When | None = None,
        as_of: When | None = None,
        min_score: float | None = None,
        offset: int = 0,
        recency: float = 0.0,
        half_life: float = 30 * 86_400.0,
        diversity: float = 0.0,
        explain: bool = False,
        **kwargs: Any,
    ) -> LongTermMemoryRetrieved:
        """Find memories by words and by meaning, best first; any text is a plain question.

        A score is in [0, 1]: how well the best hit meets the question (the share of the question's words it
        has, or how near its meaning is, whichever is more), times a hit's place below the best.

        Args:
            query: The question.
            limit: The most hits.
            namespace: Searched exactly; None is ``()``.
            deep: Search the namespaces below as well.
            filters: What metadata must hold, see `jianmu.memory.long_term.engine.filters.Filter`.
            since: Only what has a time at or after this.
            until: Only what has a time before this.
            as_of: What was true then: later facts are left out, superseded ones that held then come back.
            min_score: Hits below are left out.
            offset: Hits to skip, for paging.
            recency: From 0 (age means nothing) to 1 (age decides alone).
            half_life: Seconds in which recency halves.
            diversity: From 0 to 1: how much a hit that resembles a better one steps back (maximal marginal
                relevance, Carbonell and Goldstein, 1998); scores stay, the order changes.
            explain: Add to each hit an "explain" dict: the share of words, meaning, date, speaker,
                neighbours and session in its score, and the matching words.
            kwargs: None are known; they are refused by name.

        Raises:
            MemoryInputError: An argument that cannot be used.
            EmbedderMismatchError: The index was made with another embedder meanwhile.
        """
        refuse_unknown(self, kwargs)
        options = Options.of(
            limit=limit, filters=filters, since=since, until=until, as_of=as_of,
            min_score=min_score, offset=offset, recency=recency, half_life=half_life, diversity=diversity,
            explain=explain,
        )  # fmt: skip
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__}")
        path = space_path(namespace_tuple(namespace))
        if options.limit <= 0 or not query.strip():
            return []
        question = ask(
            query,
            self._analyzer,
            self.embedder,
            from_seconds(self._clock()).date(),
            self._word_vectors(),
            self.token_embedder,
        )

        def work(tables: Tables) -> LongTermMemoryRetrieved:
            require_agreement(tables, self.embedder, self.token_embedder)
            spaces = tables.spaces(path, deep=deep)
            retrieval = Retrieval(
                tables,
                spaces,
                question,
                options,
                analyzer=self._analyzer,
                now=self._clock(),
                embed=partial(embed_texts, self.embedder) if self.embedder else None,
            )
            ranked = retrieval.run(reranker=self._reranker, query=query)
            return [scored_hit(one.row, one.score, one.explain if explain else None) for one in ranked]

        return self._database.read(work)

    def format_retrieved(self, retrieved: LongTermMemoryRetrieved, **kwargs: Any) -> str:
        """Render hits as a fenced block for a model; arguments as in `render_retrieved`."""
        return render_retrieved(retrieved, **kwargs)

    def get(self, memory_id: str, *, namespace: Namespace | None = None) -> RetrievedMemory | None:
        """The memory with this id, or named by this key; None when there is none."""
        path = space_path(namespace_tuple(namespace))

        def work(tables: Tables) -> RetrievedMemory | None:
            _, row = self._find(tables, path, memory_id, self._clock())
            return None if row is None else hit(row.checked())

        return self._database.read(work)

    def list(
        self, namespace: Namespace | None = None, *, limit: int | None = None, offset: int = 0
    ) -> LongTermMemoryRetrieved:
        """The memories of exactly this namespace, newest first.

        Raises:
            MemoryInputError: A limit or an offset that is no count.
        """
        check_page(limit, offset)
        path = space_path(namespace_tuple(namespace))

        def work(tables: Tables) -> LongTermMemoryRetrieved:
            return [
                hit(row)
                for space in tables.spaces(path, deep=False)
                for row in tables.page(space, now=self._clock(), limit=limit, offset=offset)
            ]

        return self._database.read(work)

    def history(self, memory_id: str, *, namespace: Namespace | None = None) -> builtins.list[dict[str, Any]]:
        """What a memory said, oldest first; the last entry is what it says now.

        Each entry has "content", "metadata", "valid_from" and "valid_to" (aware datetimes in UTC; None in the
        last entry). Empty when there is no such memory.
        """
        path = space_path(namespace_tuple(namespace))

        def work(tables: Tables) -> builtins.list[dict[str, Any]]:
            now = self._clock()
            space, row = self._find(tables, path, memory_id, now)
            if space is None or row is None:
                return []
            before = [
                history_entry(version.content, version.metadata, version.time, version.until)
                for version in tables.versions(space, row.uid, now=now)
            ]
            row.checked()
            return [*before, history_entry(row.content, row.metadata, row.time, None)]

        return self._database.read(work)
