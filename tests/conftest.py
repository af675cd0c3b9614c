"""What all tests share: one real PostgreSQL server per test run, one fresh database per test module."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from jianmu.testing.postgres import PostgresServer

_HOME = "JIANMU_TEST_POSTGRES"

# A busy machine makes generating slow and no test wrong.
settings.register_profile("jianmu", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("jianmu")


def pytest_configure(config: pytest.Config) -> None:
    """Name the server's folder before any xdist worker starts; the workers inherit it."""
    if not hasattr(config, "workerinput"):
        os.environ[_HOME] = tempfile.mkdtemp(prefix="jianmu-pg-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server that some worker started."""
    if not hasattr(config, "workerinput") and _HOME in os.environ:
        home = Path(os.environ.pop(_HOME))
        if (home / "server").exists():
            PostgresServer(home / "server").remove()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """Return the server that all workers share; whoever needs it first starts it."""
    home = Path(os.environ[_HOME])
    home.chmod(0o755)
    server = PostgresServer(home / "server")
    with FileLock(home / "starting.lock"):
        if server.pid is None:
            server.start()
    return server


@pytest.fixture(scope="module")
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the connection string of a database made for this test module."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield postgres_server.dsn(name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
