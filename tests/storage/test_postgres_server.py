"""The server that the tests bring up is a real one."""

import psycopg

from jianmu.testing.postgres import PostgresServer


def test_it_answers_on_both_transports_and_has_pgvector(
    postgres_server: PostgresServer, postgres_dsn: str
) -> None:
    database = postgres_dsn.rpartition("=")[2]
    for tcp in (False, True):
        with psycopg.connect(postgres_server.dsn(database, tcp=tcp)) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            distance = connection.execute("SELECT '[1,2]'::vector <-> '[1,4]'::vector").fetchone()
            assert distance == (2.0,)


def test_a_killed_server_comes_back_with_what_was_committed() -> None:
    server = PostgresServer()
    server.start()
    try:
        with psycopg.connect(server.dsn()) as connection:
            connection.execute("CREATE TABLE t (n int)")
            connection.execute("INSERT INTO t VALUES (1)")
        server.kill()
        assert server.pid is None
        server.start()
        with psycopg.connect(server.dsn(tcp=True)) as connection:
            assert connection.execute("SELECT n FROM t").fetchone() == (1,)
    finally:
        server.remove()
