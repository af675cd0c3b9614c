"""Long-term memory in one SQLite file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from jianmu.memory.long_term.engine.items import new_id
from jianmu.memory.long_term.engine.memory import EngineMemory
from jianmu.memory.long_term.engine.sqlite_tables import SqliteDatabase
from jianmu.retrieval.embedders.base import EmbedderChoice
from jianmu.retrieval.late.tokens import TokenEmbedderChoice
from jianmu.retrieval.rerank import Reranker

__all__ = ["SqliteLongTermMemory"]


class SqliteLongTermMemory(EngineMemory):
    """Memories found by words and by meaning, kept in one file; several processes may share it.

    What `record` returned survives kill -9 and power loss (WAL, synchronous=FULL). Not for a network folder:
    SQLite's locks do not hold there. Safe to share between threads; one of them works at a time.

    Args:
        path: The file; it and its folder are made (0600, 0700).
        embedder: "auto" takes the embedder recorded in the file, else the best offline one that is installed
            (extra ``[local]``), else words alone; never one that sends texts away. None is
            words alone; or give an `Embedder`, or a function from a list of texts to a list of vectors.
        late_interaction: A token embedder, which finds more in English for about 3 KB a message, e.g.
            `jianmu.retrieval.ColbertEmbedder` (extra ``[late]``). "auto" takes the one that is
            recorded with the index and none for a new one; None searches without.
        reranker: Looks again at the best hits of each search.
        timeout: Seconds to wait for another process that writes.
        cache_bytes: Memory for the vectors of the namespaces searched last; the current one is always held.
        clock: Seconds since 1970.
        new_id: Makes the public id of an item.

    Raises:
        EmbedderMismatchError: The file was made with another embedder.
        StorageError: The file cannot be opened, or was written by a newer version.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: EmbedderChoice = "auto",
        *,
        late_interaction: TokenEmbedderChoice = "auto",
        reranker: Reranker | None = None,
        timeout: float = 60.0,
        cache_bytes: int = 128 * 1024 * 1024,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        database = SqliteDatabase(path, timeout=timeout, cache_bytes=cache_bytes)
        super().__init__(
            database,
            embedder=embedder,
            late_interaction=late_interaction,
            reranker=reranker,
            clock=clock,
            new_id=new_id,
        )
