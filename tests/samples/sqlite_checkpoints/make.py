"""Makes the stored sample of the SQLite checkpoint format, for tests/checkpoint_sql/test_stored_formats.py.

    python -m tests.samples.sqlite_checkpoints.make

Run it only when the format changes, and keep the older samples: a file that somebody has must open.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from jianmu.memory import SqliteCheckpointer

HERE = Path(__file__).parent


def envelope(step: int) -> dict[str, object]:
    """What each sample holds at a step."""
    return {
        "step": step,
        "state": {
            "messages": [{"role": "user", "content": f"你好 {number}"} for number in range(step)],
            "mood": "calm",
        },
        "tree": {"0": "RUNNING", "0/1": "SUCCESS"},
        "runtime_metadata": {"ticks": step},
    }


def make(path: Path) -> None:
    """Write five steps and a journal, and leave one file without a log beside it."""
    with SqliteCheckpointer(path, clock=lambda: 1_796_000_000.5) as store:
        for step in range(1, 6):
            kept = envelope(step)
            store.save_checkpoint("session-42", step, kept["state"], kept["tree"], kept["runtime_metadata"])  # type: ignore[arg-type]
        answer = {"run_id": "r", "path": "0/1", "activation": 2, "key": "k", "value": {"a": [1, 2.5, None]}}
        store.append_journal("session-42", answer)  # type: ignore[arg-type]
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def version(path: Path) -> int:
    """The schema version of a file."""
    connection = sqlite3.connect(path)
    ((found,),) = connection.execute("SELECT version FROM jianmu_kind").fetchall()
    connection.close()
    return int(found)


if __name__ == "__main__":
    target = HERE / "new.db"
    make(target)
    target.rename(HERE / f"format{version(target)}.db")
