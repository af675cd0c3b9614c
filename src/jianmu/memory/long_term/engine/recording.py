"""What is written: record, update, delete; each one transaction."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jianmu.errors import MemoryInputError, MemoryNotFoundError
from jianmu.memory.long_term.base import (
    LongTermMemoryInput,
    LongTermMemoryRecordResult,
    Namespace,
    RetrievedMemory,
)
from jianmu.memory.long_term.capabilities import refuse_unknown
from jianmu.memory.long_term.engine.agreement import require_agreement
from jianmu.memory.long_term.engine.embedding import SlotVectors, slot_vectors, token_vectors
from jianmu.memory.long_term.engine.indexing import embedding_key
from jianmu.memory.long_term.engine.items import Draft, Row, draft_of, space_path, storable, to_json
from jianmu.memory.long_term.engine.opened import OpenedMemory
from jianmu.memory.long_term.engine.results import hit
from jianmu.memory.long_term.engine.tables import Space, Tables
from jianmu.memory.long_term.engine.times import When
from jianmu.memory.long_term.engine.writing import Writer
from jianmu.memory.long_term.inputs import namespace_tuple

__all__ = ["Recording"]


class Recording(OpenedMemory):
    """The writing half of `EngineMemory`."""

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
        places: dict[str, builtins.list[int]] = {}
        for at, (path, _) in enumerate(drafts):
            places.setdefault(path, []).append(at)
        unknown = self._unknown(drafts, places)
        ready, words = slot_vectors(unknown, self.embedder), self._new_words(unknown)
        tokens = token_vectors(unknown, self.token_embedder)

        def work(tables: Tables) -> builtins.list[LongTermMemoryRecordResult]:
            require_agreement(tables, self.embedder, self.token_embedder, writing=True)
            results: dict[int, LongTermMemoryRecordResult] = {}
            for path in sorted(places):
                writer = self._writer(tables, tables.claim(path), ready, now)
                writer.sweep()
                writer.expect(drafts[at][1] for at in places[path])
                for at in places[path]:
                    results[at] = writer.record(drafts[at][1])
                writer.finish()
                self._add_tokens(tables, path, [drafts[at][1] for at in places[path]], tokens)
            tables.add_words(words)
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
        _, row = self._database.read(lambda tables: self._find(tables, path, memory_id, now))
        speaker = None if row is None else row.speaker  # the embedder sees it before the text
        if content is None and time is not None and row is not None:
            content = row.content
        draft = (
            None
            if content is None
            else draft_of(content, now=now, metadata=metadata, time=time, speaker=speaker)
        )
        fresh = None if metadata is None else to_json(metadata)
        changed = [draft] if draft is not None else []
        ready, words = slot_vectors(changed, self.embedder), self._new_words(changed)
        tokens = token_vectors(changed, self.token_embedder)

        def work(tables: Tables) -> RetrievedMemory:
            require_agreement(tables, self.embedder, self.token_embedder, writing=True)
            space, row = self._find(tables, path, memory_id, now, claim=True)
            if row is None or space is None:
                raise MemoryNotFoundError(
                    f"no memory {memory_id!r} in namespace {namespace_tuple(namespace)!r}"
                )
            writer = self._writer(tables, space, ready, now)
            if draft is None or (draft.content == row.content and time is None):
                writer.change_metadata(row, row.metadata if fresh is None else fresh)
            else:
                if draft.digest != row.digest:
                    writer.expire(draft.digest)
                twin = tables.row(space, "digest", draft.digest)
                if twin is not None and twin.id != row.id:
                    raise MemoryInputError(
                        f"memory {twin.uid!r} has this text already; delete one of the two"
                    )
                row = tables.row(space, "id", row.id)  # again: dropping an expired one changes its neighbours
                assert row is not None
                writer.replace(
                    row,
                    content=draft.content,
                    metadata=row.metadata if fresh is None else fresh,
                    time=draft.time,
                    day=draft.day,
                    dated=row.dated or time is not None,
                    expires=row.expires,
                )
            writer.finish()
            tables.add_words(words)
            self._add_tokens(tables, path, changed, tokens)
            return hit(row)

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

    def _writer(self, tables: Tables, space: Space, ready: SlotVectors, now: float) -> Writer:
        def embed(row: Row | Draft) -> Sequence[bytes | None]:
            found = ready.get(embedding_key(row))
            return found if found is not None else next(iter(slot_vectors([row], self.embedder).values()), ())

        return Writer(tables, space, analyzer=self._analyzer, embed=embed, now=now, new_id=self._new_id)

    def _new_words(self, drafts: Sequence[Draft]) -> builtins.list[tuple[int, bytes]]:
        """Vectors of the words that are met for the first time, if the embedder knows words."""
        vectors = self._word_vectors()
        if vectors is None or not drafts:
            return []
        texts = [draft.content for draft in drafts]
        return self._database.read(lambda tables: vectors.to_save(texts, tables.words))

    def _add_tokens(
        self, tables: Tables, path: str, drafts: Sequence[Draft], ready: Mapping[bytes, bytes]
    ) -> None:
        """Keep the token vectors of these texts; those of one that came back from expiry are made now."""
        embedder = self.token_embedder
        if embedder is None or not drafts:
            return
        for space in tables.spaces(path, deep=False):
            known = tables.tokens_known(space, embedder.id, {draft.digest for draft in drafts})
            lacking = [draft for draft in drafts if draft.digest not in known]
            made = token_vectors([draft for draft in lacking if embedding_key(draft) not in ready], embedder)
            tokens = {**ready, **made}
            tables.add_tokens(space, embedder.id, {d.digest: tokens[embedding_key(d)] for d in lacking})

    def _unknown(
        self, drafts: Sequence[tuple[str, Draft]], places: Mapping[str, Sequence[int]]
    ) -> builtins.list[Draft]:
        """The drafts whose text is new: a repeated one is not embedded again."""
        if self.embedder is None and self.token_embedder is None:
            return []

        def work(tables: Tables) -> builtins.list[Draft]:
            new: builtins.list[Draft] = []
            for path, some in places.items():
                digests = {drafts[at][1].digest for at in some}
                for space in tables.spaces(path, deep=False):
                    digests -= tables.known(space, "digest", digests)
                new += [drafts[at][1] for at in some if drafts[at][1].digest in digests]
            return new

        return self._database.read(work)


def _draft(item: Mapping[str, Any], now: float) -> tuple[str, Draft]:
    if not isinstance(item, Mapping):
        raise MemoryInputError(
            f"an item of record_many is a dict of record's arguments, e.g. {{'inputs': 'a text'}}, not a"
            f" {type(item).__name__}"
        )
    arguments = dict(item)
    namespace = namespace_tuple(arguments.pop("namespace", None))
    for part in namespace:
        storable(part, "a part of the namespace")
    if "inputs" not in arguments:
        raise MemoryInputError(
            "an item of record_many needs 'inputs', the text, beside record's other arguments; it has "
            + (", ".join(map(repr, arguments)) or "nothing")
        )
    return space_path(namespace), draft_of(arguments.pop("inputs"), now=now, **arguments)
