"""Tables that exist are opened with no more rights than reading and writing them takes."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from tests.long_term.embedders import hashed

from jianmu.memory import PostgresCheckpointer, PostgresLongTermMemory


@pytest.fixture
def plain_dsn(postgres_dsn: str) -> Iterator[str]:
    """Return how a role connects that may use the tables of the database and create none."""
    with PostgresCheckpointer(postgres_dsn), PostgresLongTermMemory(postgres_dsn, hashed()) as memory:
        memory.record("made by the owner")
    role = sql.Identifier(name := f"plain_{uuid.uuid4().hex}")
    with psycopg.connect(postgres_dsn, autocommit=True) as owner:
        owner.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        owner.execute(sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA public TO {}").format(role))
    yield psycopg.conninfo.make_conninfo(postgres_dsn, user=name)
    with psycopg.connect(postgres_dsn, autocommit=True) as owner:
        owner.execute(sql.SQL("DROP OWNED BY {}").format(role))
        owner.execute(sql.SQL("DROP ROLE {}").format(role))


def test_a_role_that_may_create_nothing_cannot_create(plain_dsn: str) -> None:
    with psycopg.connect(plain_dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE IF NOT EXISTS jianmu_other (n int)")


def test_checkpoints_open_with_a_role_that_may_create_nothing(plain_dsn: str) -> None:
    with PostgresCheckpointer(plain_dsn) as checkpointer:
        checkpointer.save_checkpoint("t", 1, {"a": 1})
        assert checkpointer.list_checkpoints("t")[0].step == 1


def test_memories_open_with_a_role_that_may_create_nothing(plain_dsn: str) -> None:
    with PostgresLongTermMemory(plain_dsn, hashed()) as memory:
        memory.record("tea is green")
        assert [hit["content"] for hit in memory.retrieve("tea", limit=1)] == ["tea is green"]
