"""Events in a file."""

from __future__ import annotations

import json
import stat
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, RuntimeEventBus, StateManager, node
from jianmu.errors import StorageError
from jianmu.memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext
from jianmu.telemetry import JsonlSink


class State(BaseModel):
    n: int = 0


@node
async def leaf(ctx: LeafContext) -> None:
    ctx.emit("说", {"文": "你好\u2028\ud800", "price": Decimal("0.10")})


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


async def test_the_events_of_a_run_are_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "events.jsonl"
    runner = ReactiveRunner(leaf(), StateManager(State))
    with JsonlSink(path) as sink:
        runner.event_bus.subscribe(sink)
        await runner.run(checkpointer=InMemoryCheckpointer())
    types = [each["type"] for each in lines(path)]
    assert types.count("checkpoint.saved") == 2
    told = next(each for each in lines(path) if each["type"] == "说")
    assert told["payload"] == {"thread_id": "default", "path": "0", "文": "你好\u2028\ud800", "price": "0.10"}
    assert datetime.fromisoformat(str(told["time"])).tzinfo is not None
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_file_makes_room(tmp_path: Path) -> None:
    bus = RuntimeEventBus(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    with JsonlSink(tmp_path / "e.jsonl", max_bytes=500) as sink:
        bus.subscribe(sink)
        for n in range(20):
            bus.emit("n", {"n": n})
        assert bus.drain(5)
        bus.emit("n", {"n": 20})
        assert bus.drain(5)
    kept = [*lines(tmp_path / "e.jsonl.1"), *lines(tmp_path / "e.jsonl")]
    numbers = [each["payload"]["n"] for each in kept]  # type: ignore[index]
    assert numbers == list(range(numbers[0], 21))
    assert (tmp_path / "e.jsonl.1").stat().st_size <= 500


def test_a_path_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write events"):
        JsonlSink(tmp_path / "file" / "events.jsonl")


def test_after_close_events_are_dropped(tmp_path: Path) -> None:
    bus = RuntimeEventBus()
    sink = JsonlSink(tmp_path / "e.jsonl")
    bus.subscribe(sink)
    sink.close()
    sink.close()
    bus.emit("late")
    assert bus.drain(5)
    assert bus.failed == 0
    assert lines(tmp_path / "e.jsonl") == []
