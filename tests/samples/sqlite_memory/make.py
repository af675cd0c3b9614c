"""Makes the stored sample of the SQLite memory format, for tests/long_term/test_stored_formats.py.

    python -m tests.samples.sqlite_memory.make

Run it only when the format changes, and keep the older samples: a file that somebody has must open, or be
refused with what to do.
"""

from __future__ import annotations

import gzip
import itertools
import sqlite3
import tempfile
from pathlib import Path

from jianmu.memory import SqliteLongTermMemory
from tests.long_term.embedders import hashed

HERE = Path(__file__).parent
LONG = " ".join(f"Sentence number {number} is about the garden." for number in range(60))


def fill(memory: SqliteLongTermMemory) -> None:
    """One of everything that the tables can hold."""
    memory.record("lives in Paris", namespace=("me",), key="home", time="2023-01-01")
    memory.record("lives in London", namespace=("me",), key="home", time="2024-06-01")
    memory.record(
        "我对花生过敏", namespace=("me",), key="allergy", metadata={"级别": "高", "n": [1, 2.5, None]}
    )
    memory.record("我对花生过敏", namespace=("me",), key="food")
    for number, text in enumerate(("where did we meet", "on the bridge", "it was raining")):
        memory.record(text, namespace=("me", "chat"), session="s", speaker=["Ann", "Bo"][number % 2])
    memory.record(LONG + " The hint is xylophone quartz.", namespace=("me", "chat"), speaker="assistant")
    memory.record("gone by tomorrow", namespace=("me",), ttl=3_600)
    memory.record_many({"inputs": f"note number{n} about tea", "namespace": ("notes",)} for n in range(40))
    memory.delete(
        memory.retrieve("number7", namespace=("notes",), limit=1)[0]["id"] or "", namespace=("notes",)
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        numbers = itertools.count()
        with SqliteLongTermMemory(
            path, hashed(16), clock=lambda: 1_796_000_000.0, new_id=lambda: f"id-{next(numbers)}"
        ) as memory:
            fill(memory)
        connection = sqlite3.connect(path)
        version = connection.execute("SELECT version FROM jianmu_kind").fetchone()[0]
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        target = HERE / f"format{version}.db.gz"
        target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        print(target, path.stat().st_size, target.stat().st_size)


if __name__ == "__main__":
    main()
