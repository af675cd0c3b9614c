"""A real PgBouncer in transaction mode, with two server connections for all of a test's."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from jianmu.testing.postgres import PostgresServer

_SETTINGS = """
[databases]
* = host=127.0.0.1 port={port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 500
server_reset_query =
logfile = {folder}/log
pidfile = {folder}/pid
{user}
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class PgBouncer:
    """One pooler before one server.

    Args:
        folder: Where its settings and log live.
        server: The server behind it.
    """

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.port = free_port()
        self._settings = folder / "pgbouncer.ini"
        user = "user = nobody" if os.name == "posix" and os.geteuid() == 0 else ""
        text = _SETTINGS.format(port=server.port, own_port=self.port, folder=folder, user=user)
        self._settings.write_text(text, "utf-8")
        for path in (folder, *folder.parents):
            if path.owner() == getpass.getuser() and user:
                path.chmod(path.stat().st_mode | 0o055)
        folder.chmod(0o777)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        assert program is not None
        self._process = subprocess.Popen([program, "-q", str(self._settings)])
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < deadline, "PgBouncer does not start"
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def dsn(self, database: str) -> str:
        """Return the connection string of a database behind it."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"


@pytest.fixture(scope="session")
def pgbouncer(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[PgBouncer]:
    if shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin") is None:
        pytest.skip("needs the system package pgbouncer")
    bouncer = PgBouncer(tmp_path_factory.mktemp("pgbouncer"), postgres_server)
    bouncer.start()
    yield bouncer
    bouncer.kill()


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the name of a database of the test's own: PgBouncer passes no search_path on."""
    name = f"pooled_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield name
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
