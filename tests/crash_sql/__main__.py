"""`make crash-sql`: thousands of kills while saving, on SQLite and PostgreSQL."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from jianmu.memory import PostgresCheckpointer, SqliteCheckpointer
from jianmu.testing.postgres import PostgresServer
from tests.crash_sql.killer import Open, kill_while_saving


def measure(name: str, open_store: Open, kills: int, seed: int) -> bool:
    began = time.monotonic()
    report = kill_while_saving(open_store, kills, seed)
    print(
        f"{name}: {report.kills} kills, {report.acknowledged} saves acknowledged, {report.lost} lost, "
        f"{report.mixed} mixed, {len(report.errors)} errors, {time.monotonic() - began:.0f} s"
    )
    for error in report.errors[:5]:
        print("  ", error)
    return report.clean


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", choices=("sqlite", "postgres", "both"), default="both")
    options = parser.parse_args()
    clean = True
    if options.backend != "postgres":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "c.db"
            clean &= measure("sqlite", lambda: SqliteCheckpointer(path), options.kills, options.seed)
    if options.backend != "sqlite":
        server = PostgresServer()
        server.start()
        try:
            dsn = server.dsn()
            clean &= measure("postgres", lambda: PostgresCheckpointer(dsn), options.kills, options.seed)
        finally:
            server.remove()
    return 0 if clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
