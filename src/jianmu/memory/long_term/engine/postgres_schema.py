"""The engine's tables in PostgreSQL, version by version."""

from __future__ import annotations

from jianmu.errors import LongTermMemoryError, StorageError
from jianmu.memory.long_term.engine.tables import FIRST_FORMAT
from jianmu.retrieval.scripts import UNSPACED
from jianmu.storage.postgres import PostgresConnection
from jianmu.storage.postgres_kinds import migrate as kinds_migrate
from jianmu.storage.postgres_kinds import version_of

__all__ = ["migrate"]

_KIND = "memory"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS memory_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE IF NOT EXISTS memory_space (
        path TEXT COLLATE "C" PRIMARY KEY, id BIGINT NOT NULL UNIQUE, items BIGINT NOT NULL,
        slots BIGINT NOT NULL, documents BIGINT NOT NULL, words BIGINT NOT NULL, epoch BIGINT NOT NULL,
        segments BYTEA NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_item (
        space BIGINT NOT NULL, id BIGINT NOT NULL, uid TEXT NOT NULL, slot BIGINT NOT NULL,
        passages BIGINT NOT NULL, length BIGINT NOT NULL, before BIGINT, after BIGINT, session TEXT,
        speaker TEXT, time DOUBLE PRECISION NOT NULL, day BIGINT NOT NULL, dated BOOLEAN NOT NULL,
        expires DOUBLE PRECISION, content TEXT NOT NULL, metadata TEXT NOT NULL, digest BYTEA NOT NULL,
        created DOUBLE PRECISION NOT NULL, updated DOUBLE PRECISION NOT NULL, count BIGINT NOT NULL,
        PRIMARY KEY (space, id)
    )
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS memory_item_uid ON memory_item (space, uid)",
    "CREATE UNIQUE INDEX IF NOT EXISTS memory_item_digest ON memory_item (space, digest)",
    "CREATE INDEX IF NOT EXISTS memory_item_session ON memory_item (space, session, id)",
    "CREATE INDEX IF NOT EXISTS memory_item_expires ON memory_item (space, expires)",
    """
    CREATE TABLE IF NOT EXISTS memory_key (
        space BIGINT NOT NULL, key TEXT COLLATE "C" NOT NULL, item BIGINT NOT NULL, PRIMARY KEY (space, key)
    )
    """,
    "CREATE INDEX IF NOT EXISTS memory_key_item ON memory_key (space, item)",
    """
    CREATE TABLE IF NOT EXISTS memory_version (
        space BIGINT NOT NULL, uid TEXT NOT NULL, number BIGINT NOT NULL, content TEXT NOT NULL,
        metadata TEXT NOT NULL, time DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (space, uid, number)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_posting (
        space BIGINT NOT NULL, segment BIGINT NOT NULL, term TEXT COLLATE "C" NOT NULL, first BIGINT NOT NULL,
        entries BYTEA NOT NULL, PRIMARY KEY (space, segment, term, first)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_passage (
        space BIGINT NOT NULL, slot BIGINT NOT NULL, item BIGINT NOT NULL, vector BYTEA, near halfvec,
        PRIMARY KEY (space, slot)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS memory_staged (
        space BIGINT NOT NULL, digest BYTEA NOT NULL, vectors BYTEA NOT NULL, PRIMARY KEY (space, digest)
    )
    """,
)
_WORDS = ("CREATE TABLE IF NOT EXISTS memory_word (word BIGINT NOT NULL PRIMARY KEY, vector BYTEA NOT NULL)",)
_VERSIONS_EXPIRE = ("ALTER TABLE memory_version ADD COLUMN IF NOT EXISTS expires DOUBLE PRECISION",)
_TOKENS = (
    """
    CREATE TABLE IF NOT EXISTS memory_token (
        space BIGINT NOT NULL, digest BYTEA NOT NULL, model TEXT NOT NULL, tokens BYTEA NOT NULL,
        PRIMARY KEY (space, digest, model)
    )
    """,
)
_CHECKSUMS_AND_SCRIPTS = (
    "ALTER TABLE memory_item ADD COLUMN IF NOT EXISTS crc BIGINT",
    "ALTER TABLE memory_version ADD COLUMN IF NOT EXISTS crc BIGINT",
    "ALTER TABLE memory_item ADD COLUMN IF NOT EXISTS unspaced BOOLEAN NOT NULL DEFAULT false",
    f"UPDATE memory_item SET unspaced = true WHERE content ~ '[{UNSPACED}]'",  # noqa: S608 - a constant
)
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (),
    _TABLES,
    _WORDS,
    _VERSIONS_EXPIRE,
    _TOKENS,
    _CHECKSUMS_AND_SCRIPTS,
)


def migrate(connection: PostgresConnection) -> None:
    """Bring the tables to the newest version."""
    version = version_of(connection, _KIND)
    if version == 1:
        raise LongTermMemoryError(FIRST_FORMAT)
    if version < len(_MIGRATIONS):
        _require_pgvector(connection)
    kinds_migrate(connection, _KIND, "memory", _MIGRATIONS, LongTermMemoryError)


def _require_pgvector(connection: PostgresConnection) -> None:
    offered = connection.execute(
        "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone()
    if offered is None:
        raise StorageError("this PostgreSQL has no pgvector; install the extension `vector`, 0.8 or newer")
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
