"""SqliteCheckpointer passes the contract."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from jianmu.memory.checkpoint.sqlite import SqliteCheckpointer
from jianmu.testing import CheckpointerContract, CheckpointerEndurance
from jianmu.testing.checkpointer_contract import Clock


class SqliteSuite(CheckpointerContract):
    exposes_records = True

    def read_record(self, home: Path, thread_id: str, step: int) -> bytes:
        with sqlite3.connect(home / "c.db") as database:
            found = database.execute(
                "SELECT body FROM jianmu_step WHERE thread = ? AND step = ?", (thread_id.encode(), step)
            ).fetchone()
        database.close()
        return bytes(found[0])

    def write_record(self, home: Path, thread_id: str, step: int, data: bytes) -> None:
        with sqlite3.connect(home / "c.db") as database:
            database.execute(
                "UPDATE jianmu_step SET body = ? WHERE thread = ? AND step = ?",
                (data, thread_id.encode(), step),
            )
        database.close()


class TestSqliteCheckpointer(SqliteSuite):
    saves_promptly = True

    def make(self, home: Path) -> SqliteCheckpointer:
        return SqliteCheckpointer(home / "c.db", durability="flush")

    def make_with_clock(self, home: Path, clock: Clock) -> SqliteCheckpointer:
        return SqliteCheckpointer(home / "c.db", durability="flush", clock=clock)


class TestDurableSqliteCheckpointer(CheckpointerContract):
    many_saves = 20

    def make(self, home: Path) -> SqliteCheckpointer:
        return SqliteCheckpointer(home / "c.db")


class TestSqliteCheckpointerAtLength(CheckpointerEndurance):
    big_state = 5_000_000
    many_steps = 1_000

    def make(self, home: Path) -> SqliteCheckpointer:
        return SqliteCheckpointer(home / "c.db", durability="flush")


@pytest.mark.slow
class TestSqliteCheckpointerAtFullLength(CheckpointerEndurance):
    def make(self, home: Path) -> SqliteCheckpointer:
        return SqliteCheckpointer(home / "c.db", durability="flush")
