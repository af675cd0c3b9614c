"""The long proof: ``python -m tests.crash --kills 500``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from jianmu.testing.postgres import PostgresServer

from .harness import Report, crash_one_tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=5, help="most kills per tree")
    parser.add_argument("--backend", choices=("file", "sqlite", "postgres"), default="file")
    parser.add_argument("--durability", choices=("fsync", "flush"), default="fsync")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    server = PostgresServer() if options.backend == "postgres" else None
    if server is not None:
        server.start()
    try:
        return prove(options, options.backend if server is None else server.dsn())
    finally:
        if server is not None:
            server.remove()


def prove(options: argparse.Namespace, backend: str) -> int:
    report, seed, start = Report(), options.seed, time.monotonic()
    while report.kills < options.kills:
        folder = Path(tempfile.mkdtemp(prefix="jianmu-crash-"))
        try:
            crash_one_tree(seed, folder, report, options.each, backend, options.durability)
        finally:
            shutil.rmtree(folder)
        seed += 1
        if sys.stderr.isatty():
            print(
                f"\r{report.kills}/{options.kills} kills, {len(report.faults)} faults",
                end="",
                file=sys.stderr,
            )
    print(f"seeds {options.seed} to {seed - 1}, {time.monotonic() - start:.0f} s")
    print(report.table())
    if options.json:
        data = {
            "kills": report.kills,
            "trees": report.trees,
            "repeats": report.repeats,
            "faults": report.faults,
        }
        options.json.write_text(json.dumps({**data, "instants": report.instants}), "utf-8")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
