"""Which kinds of content a SQLite file holds, and in which schema version; one file may hold several."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from jianmu.errors import JianmuError, StorageError

__all__ = ["Migration", "migrate"]

Migration = Callable[[sqlite3.Connection], None]
"""Leads a file from one schema version to the next; the first one makes the tables."""


def migrate(
    connection: sqlite3.Connection,
    name: object,
    application_id: int,
    migrations: Sequence[Migration],
    newer: type[JianmuError],
) -> None:
    """Bring one kind of content to its newest version, in one transaction.

    Args:
        connection: In autocommit mode.
        name: The file, for messages.
        application_id: A 31-bit number that tells this kind of content from others.
        migrations: One step per schema version, oldest first.
        newer: The error for a file of a newer version.

    Raises:
        StorageError: The file belongs to something else.
    """
    if _version(connection, application_id) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, application_id)
        if version is None:
            _add_kind(connection, name, application_id)
            version = 0
        if version > len(migrations):
            raise newer(
                f"{name} has schema version {version}, and this jianmu reads up to {len(migrations)}: "
                "upgrade jianmu"
            )
        for step in migrations[version:]:
            step(connection)
        sql = "UPDATE jianmu_kind SET version = ? WHERE id = ?"
        connection.execute(sql, (len(migrations), application_id))
        connection.execute("COMMIT")
    except BaseException:  # an interruption too must leave no half
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _add_kind(connection: sqlite3.Connection, name: object, application_id: int) -> None:
    """Make room for one more kind in a file that is new or ours already."""
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute("CREATE TABLE jianmu_kind (id INTEGER PRIMARY KEY, version INTEGER NOT NULL)")
    elif not _has_kinds(connection):
        raise StorageError(f"{name} is a SQLite file of another kind; choose another path")
    connection.execute("INSERT INTO jianmu_kind VALUES (?, 0)", (application_id,))


def _version(connection: sqlite3.Connection, application_id: int) -> int | None:
    """Return the schema version of one kind of content, or None if the file does not hold it."""
    if not _has_kinds(connection):
        return None
    row = connection.execute("SELECT version FROM jianmu_kind WHERE id = ?", (application_id,)).fetchone()
    return None if row is None else int(row[0])


def _has_kinds(connection: sqlite3.Connection) -> bool:
    sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'jianmu_kind'"
    return bool(connection.execute(sql).fetchone()[0])
