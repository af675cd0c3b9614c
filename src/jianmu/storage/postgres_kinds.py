"""Which kinds of content a PostgreSQL schema holds, and in which version; one schema may hold several."""

from __future__ import annotations

from collections.abc import Sequence

from jianmu.errors import JianmuError
from jianmu.storage.postgres import PostgresConnection

__all__ = ["migrate", "version_of"]


def version_of(connection: PostgresConnection, kind: str) -> int:
    """Return the version of one kind of content, 0 if there is none; needs the right to read, no other."""
    found = connection.execute("SELECT to_regclass('jianmu_schema')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("SELECT version FROM jianmu_schema WHERE kind = %s", (kind,)).fetchone()
    return 0 if row is None else int(row[0])


def migrate(
    connection: PostgresConnection,
    kind: str,
    name: str,
    migrations: Sequence[Sequence[str]],
    newer: type[JianmuError],
) -> None:
    """Bring one kind of content to its newest version; tables that have it already need no right to create.

    Each statement runs alone, as not every PostgreSQL can undo them: a statement must be safe to repeat.

    Args:
        connection: In autocommit mode.
        kind: The name in `jianmu_schema`.
        name: What the tables are, for messages.
        migrations: The statements of each version, oldest first.
        newer: The error for tables of a newer version.
    """
    version = version_of(connection, kind)
    if version > len(migrations):
        raise newer(
            f"the {name} tables have version {version}, and this jianmu reads up to {len(migrations)}: "
            "upgrade jianmu"
        )
    if version == len(migrations):
        return
    connection.execute(
        "CREATE TABLE IF NOT EXISTS jianmu_schema (kind TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)"
    )
    for statements in migrations[version:]:
        for statement in statements:
            connection.execute(statement.encode())
    connection.execute(  # once, at the end: another process must see no version between
        "INSERT INTO jianmu_schema (kind, version) VALUES (%s, %s) "
        "ON CONFLICT (kind) DO UPDATE SET version = excluded.version",
        (kind, len(migrations)),
    )
