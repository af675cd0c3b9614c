"""A PostgreSQL server whose disk fails: an error, perhaps a restart, and no acknowledged step is lost."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import StorageError
from jianmu.memory import PostgresCheckpointer
from jianmu.testing.postgres import PostgresServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None, reason="faults are preloaded from C on Linux"
    ),
]
STEPS = 30


class Server(PostgresServer):
    """A server on a disk that can be told to fail."""

    @property
    def trigger(self) -> Path:
        return self.folder / "fault"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    server = Server(settings={"fsync": "on", "restart_after_crash": "on"})
    library = server.folder / "badserver.so"
    source = Path(__file__).with_name("badserver.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(library))
        patch.setenv("BADDISK", str(server.trigger))
        server.start()
    yield server
    server.trigger.unlink(missing_ok=True)
    server.remove()


def state(step: int) -> dict[str, Any]:
    return {"text": random.Random(step).randbytes(60_000).hex(), "n": step}


def newest_step(store: PostgresCheckpointer) -> int:
    """Return the newest step, however long the server takes to come back."""
    deadline = time.monotonic() + 60
    while True:
        try:
            found = store.get_checkpoint("t")
        except StorageError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return -1 if found is None else int(found["step"])


@pytest.mark.parametrize("fault", ["eio wal", "full wal", "short wal", "sync wal", "eio data", "full data"])
def test_a_failing_disk_below_the_server_costs_no_acknowledged_step(fault: str, server: Server) -> None:
    acknowledged: list[int] = []
    failures = 0
    with PostgresCheckpointer(server.dsn(), timeout=5) as store:
        for step in range(STEPS):
            if step == 10:
                server.trigger.write_text(fault, "utf-8")
                server.trigger.chmod(0o644)
            try:
                store.save_checkpoint("t", step, state(step))
            except StorageError:
                failures += 1
                server.trigger.unlink(missing_ok=True)
                if newest_step(store) != step:
                    store.save_checkpoint("t", step, state(step))
            acknowledged.append(step)
            if step == 20:
                server.trigger.unlink(missing_ok=True)
    if fault in ("eio wal", "full wal", "sync wal", "full data"):
        assert failures
    with PostgresCheckpointer(server.dsn()) as store:
        assert [info.step for info in reversed(store.list_checkpoints("t"))] == acknowledged
        for step in acknowledged:
            found = store.get_checkpoint("t", step=step)
            assert found is not None
            assert found["state"] == state(step)
