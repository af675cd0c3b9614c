"""A save that waits for nothing is done on the event loop; one that might wait is not even begun there."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from jianmu import ReactiveRunner, StateManager, node
from jianmu.errors import CheckpointExistsError, EncodeError, LeaseLostError
from jianmu.memory import SqliteCheckpointer
from tests.checkpoint_sql.conftest import Backend
from tests.checkpoint_sql.test_parts import Chat

BIG = {"text": "x" * 100_000}


def begun(path: Path, durability: Any = "flush") -> SqliteCheckpointer:
    store = SqliteCheckpointer(path, durability=durability)
    store.save_checkpoint("t", 1, BIG | {"n": 1})
    return store


def test_a_small_change_is_saved_at_once_and_all_the_same(tmp_path: Path) -> None:
    store = begun(tmp_path / "c.db")
    assert store.try_save_checkpoint("t", 2, BIG | {"n": 2}, {"0": "RUNNING"}, {"m": 1})
    expected = {"step": 2, "state": BIG | {"n": 2}, "tree": {"0": "RUNNING"}, "runtime_metadata": {"m": 1}}
    assert store.get_checkpoint("t") == expected
    with SqliteCheckpointer(tmp_path / "c.db") as other:
        assert other.get_checkpoint("t") == expected
        assert other.get_checkpoint("t", step=1)["state"] == BIG | {"n": 1}  # type: ignore[index]


@pytest.mark.parametrize("change", ["first", "large", "unknown", "earlier"])
def test_what_takes_longer_is_left_to_an_ordinary_save(tmp_path: Path, change: str) -> None:
    store = begun(tmp_path / "c.db")
    step, state = 2, BIG | {"n": 2}
    if change == "first":
        assert not store.try_save_checkpoint("new", 1, state)
    elif change == "large":
        assert not store.try_save_checkpoint("t", step, {"text": "y" * 90_000})
    elif change == "unknown":
        assert not SqliteCheckpointer(tmp_path / "c.db", durability="flush").try_save_checkpoint(
            "t", 2, state
        )
    else:
        assert not store.try_save_checkpoint("t", 1, state)
        with pytest.raises(CheckpointExistsError):
            store.save_checkpoint("t", 1, state)
    assert store.get_checkpoint("t")["step"] == 1  # type: ignore[index]
    store.save_checkpoint("t", 2, state)


def test_back_ends_that_flush_never_save_promptly(tmp_path: Path, backend: Backend) -> None:
    store = begun(tmp_path / "fsync.db", "fsync")
    assert not store.try_save_checkpoint("t", 2, BIG)
    if "Postgres" in backend.source:
        server = backend.open()
        server.save_checkpoint("t", 1, BIG)
        assert not server.try_save_checkpoint("t", 2, BIG)


def test_a_lock_of_another_process_is_not_waited_for(tmp_path: Path) -> None:
    store = begun(tmp_path / "c.db")
    assert store.try_save_checkpoint("t", 2, BIG | {"n": 2})
    other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not store.try_save_checkpoint("t", 3, BIG | {"n": 3})
    assert store.get_checkpoint("t")["step"] == 2  # type: ignore[index]
    other.execute("ROLLBACK")
    other.close()
    store.save_checkpoint("t", 3, BIG | {"n": 3})
    assert store.try_save_checkpoint("t", 4, BIG | {"n": 4})


def test_the_fence_holds_for_a_prompt_save_too(tmp_path: Path) -> None:
    now = [1000.0]
    stale = SqliteCheckpointer(tmp_path / "c.db", durability="flush", clock=lambda: now[0])
    lease = stale.acquire("t", ttl=5)
    stale.save_checkpoint("t", 1, BIG)
    now[0] += 10
    successor = SqliteCheckpointer(tmp_path / "c.db", durability="flush", clock=lambda: now[0])
    with successor.acquire("t", ttl=5):
        assert not stale.try_save_checkpoint("t", 2, BIG | {"n": 2})
        with pytest.raises(LeaseLostError):
            stale.save_checkpoint("t", 2, BIG | {"n": 2})
    lease.release()


def test_a_value_that_cannot_be_stored_is_refused_by_its_place(tmp_path: Path) -> None:
    store = begun(tmp_path / "c.db")
    with pytest.raises(EncodeError, match="n"):
        store.try_save_checkpoint("t", 2, {"n": (1,)})
    assert store.try_save_checkpoint("t", 2, BIG | {"n": 3})


def test_the_log_is_emptied_now_and_then(tmp_path: Path) -> None:
    store = begun(tmp_path / "c.db")
    for step in range(2, 3_000):
        state = BIG | {"n": step}
        if not store.try_save_checkpoint("t", step, state):
            store.save_checkpoint("t", step, state)
    assert (tmp_path / "c.db-wal").stat().st_size < 6_000_000


async def test_a_run_saves_promptly_and_another_goes_on_from_it(tmp_path: Path) -> None:
    seen: list[int] = []

    @node
    async def say(ctx: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        seen.append(ctx.state.turn)
        return {"messages": [{"n": len(ctx.state.messages)}], "turn": ctx.state.turn + 1}

    def tree() -> Any:
        from py_trees.decorators import Repeat

        return Repeat(name="chat", child=say(), num_success=40)

    for limit in (30, None):
        with SqliteCheckpointer(tmp_path / "c.db", durability="flush") as store:
            runner = ReactiveRunner(tree(), StateManager(Chat))
            result = await runner.run(checkpointer=store, max_ticks=limit)
    assert result.outcome == "completed"
    assert seen == list(range(40))
    assert [each["n"] for each in result.state.messages] == list(range(40))
