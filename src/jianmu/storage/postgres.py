"""A pool of PostgreSQL connections that outlives a restart of the server.

Statements run in autocommit, so that one statement is one round trip; work of several opens a transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from jianmu.errors import MissingExtraError, StorageError

try:
    import psycopg
    from psycopg import errors
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtraError("PostgreSQL", "postgres") from error

__all__ = ["PostgresConnection", "PostgresPool"]

T = TypeVar("T")

PostgresConnection = psycopg.Connection[tuple[Any, ...]]
"""A connection in autocommit mode."""

_RETRIED = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,  # two wrote the same key, or made the same table
    errors.DuplicateObject,
    errors.DuplicateTable,
)
_SERVER_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleSessionTimeout,
    errors.ConnectionException,
)
_COLLISIONS = 20


class PostgresPool:
    """Connections to one database; thread-safe, and opened anew in a forked child.

    Args:
        dsn: A connection string or URL of PostgreSQL.
        pooled: Whether a pooler in transaction mode (PgBouncer, a managed one) stands between; then nothing
            is prepared on the server.
        max_size: The most connections to keep open.
        timeout: Seconds to wait for a connection, also while the server is away.

    Raises:
        StorageError: No connection within `timeout`.
    """

    def __init__(self, dsn: str, *, pooled: bool = False, max_size: int = 10, timeout: float = 30.0) -> None:
        self._dsn = dsn
        self._options: dict[str, Any] = {"autocommit": True}
        if pooled:
            self._options["prepare_threshold"] = None
        self._max_size = max_size
        self._timeout = timeout
        self._closed = False
        self._open()

    def run(self, work: Callable[[PostgresConnection], T]) -> T:
        """Run `work` with a connection and return its result.

        It is run again after a serialization failure or a collision, and after a lost connection until
        `timeout` is over. When a connection is lost the first run may have been committed or not, so it must
        come to the same when it runs twice.

        Raises:
            StorageError: The server refused, or is away for longer than `timeout`.
        """
        self._follow_fork()
        deadline = time.monotonic() + self._timeout
        collisions = 0
        while True:
            try:
                with self._pool.connection(timeout=max(deadline - time.monotonic(), 0.001)) as connection:
                    return self._run_once(connection, work)
            except _RETRIED as error:
                collisions += 1
                if collisions > _COLLISIONS:
                    raise self._refused(error) from error
            except _LostError as error:
                if time.monotonic() > deadline:
                    raise self._away(error) from error
                self._pool.check()  # the other idle connections are as dead
            except PoolTimeout as error:
                raise self._away(error) from error
            except psycopg.Error as error:
                raise self._refused(error) from error

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        self._closed = True
        if self._pid == os.getpid():
            self._pool.close()

    def _run_once(self, connection: PostgresConnection, work: Callable[[PostgresConnection], T]) -> T:
        try:
            return work(connection)
        except psycopg.OperationalError as error:
            if connection.broken or connection.closed or isinstance(error, _SERVER_GONE):
                connection.close()  # the pool must not hand it out again
                raise _LostError(str(error)) from error
            raise

    def _open(self) -> None:
        self._pid = os.getpid()
        self._pool: ConnectionPool[PostgresConnection] = ConnectionPool(
            self._dsn,
            kwargs=self._options,
            min_size=1,
            max_size=self._max_size,
            timeout=self._timeout,
            open=False,
        )
        try:
            self._pool.open(wait=True, timeout=self._timeout)
        except PoolTimeout as error:
            self._pool.close()
            raise self._away(error) from error

    def _follow_fork(self) -> None:
        """The parent's connections must not be used in a child; its pool is left alone there."""
        if self._closed:
            raise StorageError("this PostgreSQL store is closed")
        if self._pid != os.getpid():
            self._inherited = self._pool
            self._open()

    def _away(self, error: Exception) -> StorageError:
        return StorageError(
            f"no connection to PostgreSQL within {self._timeout:g} s; is the server up, and the dsn right? "
            f"({error})"
        )

    def _refused(self, error: Exception) -> StorageError:
        return StorageError(f"PostgreSQL refused: {error}")


class _LostError(Exception):
    """The connection was lost in mid-work."""
