"""Long-term memory in PostgreSQL with pgvector, for several machines."""

from __future__ import annotations

import time
from collections.abc import Callable

from jianmu.memory.long_term.engine.items import new_id
from jianmu.memory.long_term.engine.memory import EngineMemory
from jianmu.memory.long_term.engine.postgres_tables import PostgresDatabase
from jianmu.retrieval.embedders.base import EmbedderChoice
from jianmu.retrieval.late.tokens import TokenEmbedderChoice
from jianmu.retrieval.rerank import Reranker

__all__ = ["PostgresLongTermMemory"]


class PostgresLongTermMemory(EngineMemory):
    """The memory of `SqliteLongTermMemory` on a server: the same words, ranking, history and guarantees.

    What `record` returned is as durable as the server's commit. Writers of one namespace wait for each other,
    writers of different ones do not. `erase` rewrites the tables; the server's log, its replicas and its
    backups are beyond its reach.

    Args:
        dsn: A connection string or URL; pgvector 0.8 or newer has to be installed on the server.
        embedder: As for `SqliteLongTermMemory`; what is recorded in the database comes first.
        pooled: A pooler in transaction mode (PgBouncer, a managed one) stands between.
        late_interaction: A token embedder, which finds more in English for about 3 KB a message, e.g.
            `jianmu.retrieval.ColbertEmbedder` (extra ``[late]``). "auto" takes the one that is
            recorded with the index and none for a new one; None searches without.
        reranker: Looks again at the best hits of each search.
        timeout: Seconds to wait for a connection, also while the server is away.
        clock: Seconds since 1970.
        new_id: Makes the public id of an item.

    Raises:
        MissingExtraError: psycopg is not installed (extra ``[postgres]``).
        EmbedderMismatchError: The database was made with another embedder.
        StorageError: No connection, or no pgvector.
    """

    def __init__(
        self,
        dsn: str,
        embedder: EmbedderChoice = "auto",
        *,
        pooled: bool = False,
        late_interaction: TokenEmbedderChoice = "auto",
        reranker: Reranker | None = None,
        timeout: float = 30.0,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        database = PostgresDatabase(dsn, pooled=pooled, timeout=timeout)
        try:
            super().__init__(
                database,
                embedder=embedder,
                late_interaction=late_interaction,
                reranker=reranker,
                clock=clock,
                new_id=new_id,
            )
        except BaseException:  # whatever it is, nothing stays open
            database.close()
            raise
