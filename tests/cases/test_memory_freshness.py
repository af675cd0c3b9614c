"""Reported faults of peers: stale index rows, expired rows, time zones, repeats, on both engines."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jianmu.memory import PostgresLongTermMemory, SqliteLongTermMemory
from tests.long_term.embedders import hashed

Open = Callable[..., Any]


@pytest.fixture(params=["sqlite", "postgres"])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[Any] = []
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres_dsn")
        name = "c" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute(f"CREATE SCHEMA {name}")
        place = psycopg.conninfo.make_conninfo(dsn, options=f"-c search_path={name},public")

    def make(**options: Any) -> Any:
        if request.param == "postgres":
            memory: Any = PostgresLongTermMemory(place, hashed(), **options)
        else:
            memory = SqliteLongTermMemory(tmp_path / "memory.db", hashed(), **options)
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


def contents(hits: list[Any]) -> list[str]:
    return [hit["content"] for hit in hits]


def test_a_replaced_or_deleted_text_is_found_by_neither_leg_before_and_after_reopening(
    open_memory: Open,
) -> None:
    memory = open_memory()
    memory.record("the old password is tangerine", key="k")
    memory.record("the new password is mandarin", key="k")
    for _ in range(2):
        assert contents(memory.retrieve("old tangerine password")) == ["the new password is mandarin"]
        memory.close()
        memory = open_memory()
    assert memory.delete("k") is True
    assert memory.retrieve("password mandarin tangerine") == []
    assert memory.list() == []
    memory.close()
    memory = open_memory()
    assert memory.retrieve("password mandarin tangerine") == []
    memory.record("something else", key="k")
    memory.record("tangerine jam", key="jam")
    assert contents(memory.retrieve("tangerine"))[0] == "tangerine jam"


def test_an_expired_memory_is_gone_from_every_read_without_a_sweep(open_memory: Open) -> None:
    now = [1_000_000.0]
    memory = open_memory(clock=lambda: now[0])
    kept = memory.record("tea for a minute", key="k", ttl=60)
    now[0] += 59
    assert contents(memory.retrieve("tea")) == ["tea for a minute"]
    now[0] += 2
    assert memory.get(kept["id"]) is None
    assert memory.retrieve("tea") == []
    assert memory.list() == []


def test_naive_and_aware_times_meet_and_a_day_is_a_day_in_utc(open_memory: Open) -> None:
    memory = open_memory()
    memory.record("made at two", time=datetime(2025, 7, 25, 2, tzinfo=UTC))
    memory.record("made at three", time=datetime(2025, 7, 25, 3))
    day = {"since": datetime(2025, 7, 25, tzinfo=UTC), "until": datetime(2025, 7, 26)}
    assert sorted(contents(memory.retrieve("made at", **day))) == ["made at three", "made at two"]
    assert memory.retrieve("made at", since=datetime(2025, 7, 26, tzinfo=UTC)) == []


def test_the_same_fact_from_a_retry_is_one_memory(open_memory: Open) -> None:
    memory = open_memory()
    first = memory.record("likes tea", namespace=("u",))
    again = memory.record("likes tea", namespace=("u",))
    memory.close()
    memory = open_memory()
    third = memory.record("likes tea", namespace=("u",))
    other = memory.record("likes tea", namespace=("v",))
    assert first["id"] == again["id"] == third["id"] != other["id"]
    assert len(memory.retrieve("likes tea", namespace=("u",), limit=3)) == 1


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
@pytest.mark.skipif(os.name != "posix", reason="TZ is read by POSIX systems")
def test_the_zone_of_the_process_means_nothing(zone: str, tmp_path: Path) -> None:
    code = (
        "from datetime import datetime, UTC; from jianmu.memory import SqliteLongTermMemory as M\n"
        f"m = M({str(tmp_path / 'm.db')!r}, None)\n"
        "m.record('item', time=datetime(2025, 7, 25, 2, tzinfo=UTC))\n"
        "d = lambda n: datetime(2025, 7, n, tzinfo=UTC)\n"
        "assert m.retrieve('item', since=d(25), until=d(26)) and not m.retrieve('item', since=d(26))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "TZ": zone})
