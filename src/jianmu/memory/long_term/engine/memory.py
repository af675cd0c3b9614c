"""The engine as users see it: one class over any database that holds its tables."""

from __future__ import annotations

import threading
import time as clocks
from collections.abc import Callable
from functools import partial
from typing import Literal

from jianmu.errors import MemoryInputError, MemoryNotFoundError
from jianmu.memory.long_term.base import Namespace
from jianmu.memory.long_term.capabilities import CAPABILITIES
from jianmu.memory.long_term.engine.embedding import slot_vectors
from jianmu.memory.long_term.engine.items import new_id, space_path
from jianmu.memory.long_term.engine.reading import Reading
from jianmu.memory.long_term.engine.recording import Recording
from jianmu.memory.long_term.engine.reindexing import Reindexing, progress_bar
from jianmu.memory.long_term.engine.tables import Database, Tables
from jianmu.memory.long_term.inputs import namespace_tuple
from jianmu.retrieval.embedders.base import EmbedderChoice
from jianmu.retrieval.embedders.choose import choose_embedder
from jianmu.retrieval.late.tokens import TokenEmbedderChoice, choose_token_embedder
from jianmu.retrieval.rerank import Reranker

__all__ = ["EngineMemory"]


class EngineMemory(Recording, Reading):
    """Long-term memory with a word index and, given an embedder, vectors; no model call on write or read.

    Args:
        database: Where the tables are.
        embedder: An embedder, a function over a list of texts, "auto" or None (words only).
        late_interaction: A token embedder, "auto" (the one recorded with the index, if any) or None.
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
        late_interaction: TokenEmbedderChoice = "auto",
        reranker: Reranker | None = None,
        clock: Callable[[], float] = clocks.time,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        super().__init__(
            database,
            embedder=embedder,
            late_interaction=late_interaction,
            reranker=reranker,
            clock=clock,
            new_id=new_id,
        )
        self._reindexing = threading.Lock()

    @property
    def capabilities(self) -> frozenset[str]:
        """What this memory offers beside `record` and `retrieve`."""
        every = frozenset(CAPABILITIES)
        return every if self.embedder is not None else every - {"search.semantic"}

    def erase(self, memory_id: str, *, namespace: Namespace | None = None) -> None:
        """Remove a memory and every byte of it from the files: `delete`, then `scrub`.

        Its text goes out of the history of other memories, too, where a key has moved on.

        Args:
            memory_id: Its id, or a key that names it.
            namespace: Where it is; None is ``()``.

        Raises:
            MemoryNotFoundError: There is none with this id here, so nothing was removed.
            StorageError: Deleted, but another process keeps old bytes alive; call `scrub` when it is done.
        """
        if not isinstance(memory_id, str):
            raise MemoryInputError(
                f"memory_id is a {type(memory_id).__name__}: give a string; erase_all(namespace) removes all"
            )
        if not self._erase_one(memory_id, namespace):
            raise MemoryNotFoundError(
                f"no memory {memory_id!r} in namespace {namespace_tuple(namespace)!r}: nothing was erased;"
                " if it is in another one, pass namespace=..."
            )
        self.scrub()

    def erase_all(self, namespace: Namespace) -> int:
        """Remove every memory of exactly this namespace and every byte of them; how many there were.

        Raises:
            StorageError: As for `erase`.
        """
        count = self.delete_all(namespace)
        self.scrub()
        return count

    def scrub(self) -> None:
        """Rebuild the file, so that nothing is left in it of what was deleted or has expired and was dropped.

        Takes a while when the file is large: delete many first, then scrub once. What a backup, a file
        system's snapshot or a replica holds is beyond its reach.

        Raises:
            StorageError: Another process keeps old bytes alive; call again when it is done.
        """
        self._database.write(lambda tables: tables.run("DELETE FROM memory_word"))
        self._words = (None, None)
        self._database.scrub()

    def _erase_one(self, memory_id: str, namespace: Namespace | None) -> bool:
        path, now = space_path(namespace_tuple(namespace)), self._clock()

        def work(tables: Tables) -> tuple[str | None, list[str]]:
            space, row = self._find(tables, path, memory_id, now)
            return (None, []) if space is None or row is None else (row.uid, tables.texts(space, row))

        def forget(tables: Tables) -> None:
            for space in tables.spaces(path, deep=False):
                tables.drop_versions(space, texts)

        uid, texts = self._database.read(work)
        found = self.delete(memory_id, namespace=namespace)
        if uid is not None and self.get(uid, namespace=namespace) is None:
            self._database.write(forget)
        return found

    def reindex(
        self,
        embedder: EmbedderChoice | Literal["same"] = "same",
        *,
        late_interaction: TokenEmbedderChoice | Literal["same"] = "same",
        progress: bool = True,
    ) -> int:
        """Build the index anew; a killed run goes on where it stopped when called again.

        Others search the old index until the new one is whole. Everybody else who has the memory open with
        another embedder gets an EmbedderMismatchError from then on.

        Args:
            embedder: The one to use from now on: as in the constructor, or "same" as this memory has.
            late_interaction: The token embedder to use from now on, likewise.
            progress: Show a bar on standard error.

        Returns:
            How many memories were indexed.

        Raises:
            EmbedderError: The embedder failed; the old index is untouched.
        """
        chosen = self.embedder if embedder == "same" else choose_embedder(embedder)
        late = self.token_embedder
        if late_interaction != "same":
            late = choose_token_embedder(late_interaction, None if late is None else late.id)
        with self._reindexing, progress_bar(progress) as told:
            job = Reindexing(
                self._database,
                chosen,
                partial(slot_vectors, embedder=chosen),
                analyzer=self._analyzer,
                progress=told,
                words=self._new_word_vectors(chosen),
                late=late,
            )
            count = job.run()
            self.embedder, self.token_embedder = chosen, late
        return count

    def close(self) -> None:
        """Give the file or the connections back; safe to call twice."""
        self._database.close()

    def __enter__(self) -> EngineMemory:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
