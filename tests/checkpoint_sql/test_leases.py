"""One writer per thread: a killed holder frees it at once, a paused one is fenced off."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from jianmu import LeafContext, ReactiveRunner, StateManager, node
from jianmu.errors import CheckpointArgumentError, LeaseLostError, ThreadBusyError
from jianmu.memory.checkpoint.delta_checkpointer import DeltaCheckpointer
from jianmu.memory.checkpoint.sql_lease import SqlLease, holder_has_died, this_holder
from tests.checkpoint_sql.conftest import Backend
from tests.checkpoint_sql.test_parts import Chat


def acquired_when_free(store: DeltaCheckpointer) -> SqlLease:
    deadline = time.monotonic() + 20
    while True:
        try:
            return store.acquire("t")
        except ThreadBusyError:
            assert time.monotonic() < deadline


def test_a_holder_that_lets_its_time_run_out_cannot_write_over_its_successor(backend: Backend) -> None:
    paused, successor = backend.open(), backend.open()
    lease = paused.acquire("t", ttl=0.1)
    paused.save_checkpoint("t", 1, {"by": "paused"})
    new = acquired_when_free(successor)
    successor.save_checkpoint("t", 2, {"by": "successor"})
    with pytest.raises(LeaseLostError, match="'t'"):
        paused.save_checkpoint("t", 3, {"by": "paused"})
    assert lease.lost
    record = {"run_id": "r", "path": "0", "activation": 1, "key": "k", "value": 1}
    for attempt in (
        lambda: paused.append_journal("t", record),  # type: ignore[arg-type]
        lambda: paused.trim_journal("t", [record]),  # type: ignore[list-item]
        lambda: paused.truncate_thread("t", step=1),
        lambda: paused.prune("t", keep_last=1),
        lease.renew,
    ):
        with pytest.raises(LeaseLostError):
            attempt()
    lease.release()
    assert not new.lost
    successor.save_checkpoint("t", 3, {"by": "successor"})
    assert [info.step for info in successor.list_checkpoints("t")] == [3, 2, 1]
    assert successor.get_checkpoint("t")["state"] == {"by": "successor"}


def test_a_late_holder_that_nobody_followed_still_holds(backend: Backend) -> None:
    store = backend.open()
    lease = store.acquire("t", ttl=0.001)
    store.save_checkpoint("t", 1, {})
    lease.renew()
    store.save_checkpoint("t", 2, {})
    assert not lease.lost


def test_a_killed_holder_on_this_machine_frees_the_thread_at_once(backend: Backend) -> None:
    program = f"{backend.source}; lease = store.acquire('t', ttl=3600); print('held', flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    store = backend.open()
    with pytest.raises(ThreadBusyError, match=f"process {holder.pid} on"):
        store.acquire("t")
    with pytest.raises(ThreadBusyError, match=f"process {holder.pid} on"):
        store.save_checkpoint("t", 1, {})
    holder.kill()
    holder.communicate()
    began = time.monotonic()
    store.save_checkpoint("t", 1, {"n": 1})
    with store.acquire("t"):
        assert time.monotonic() - began < 5
        store.save_checkpoint("t", 2, {"n": 2})


def test_a_journal_known_to_be_empty_is_not_sent_for(backend: Backend) -> None:
    store, other = backend.open(), backend.open()
    record = {"run_id": "r", "path": "0", "activation": 1, "key": "k", "value": 1}
    with store.acquire("t") as lease:
        assert store.read_journal("t") == []
        assert lease.journal_is_empty
        store.append_journal("t", record)  # type: ignore[arg-type]
        assert not lease.journal_is_empty
        store.trim_journal("t", [])
        assert other.read_journal("t") == []
        store.trim_journal("t", [])
        store.append_journal("t", record)  # type: ignore[arg-type]
    assert other.read_journal("t") == [record]


@pytest.mark.parametrize("ttl", [0, -1, float("nan")])
def test_a_lease_lasts_some_time(backend: Backend, ttl: float) -> None:
    with pytest.raises(CheckpointArgumentError, match="ttl"):
        backend.open().acquire("t", ttl)


def test_a_holder_of_another_machine_or_one_that_cannot_be_read_counts_as_alive() -> None:
    me = this_holder()
    assert not holder_has_died(me)
    assert not holder_has_died(None)
    assert not holder_has_died("no json")
    assert not holder_has_died(me.replace('"pid": ', '"pid": 9').replace('"host": "', '"host": "not-'))
    if '"started": ""' not in me:  # the system tells
        assert holder_has_died(me.replace('"started": "', '"started": "9'))
        assert holder_has_died(me.replace('"boot": "', '"boot": "not-'))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("what", ["close", "save", "release"])
def test_a_forked_child_has_no_part_in_its_parents_lease(backend: Backend, what: str) -> None:
    store = backend.open()
    lease = store.acquire("t")
    child = os.fork()
    if child == 0:
        try:
            if what == "save":
                try:
                    store.save_checkpoint("t", 1, {"by": "child"})
                except ThreadBusyError:
                    os._exit(0)
                os._exit(3)
            lease.release() if what == "release" else store.close()
            os._exit(0)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(ThreadBusyError):
        backend.open().acquire("t")
    store.save_checkpoint("t", 1, {"by": "parent"})
    lease.release()


@pytest.mark.parametrize("turns", range(6))
async def test_a_run_cancelled_while_it_takes_its_thread_gives_it_back(backend: Backend, turns: int) -> None:
    @node
    async def leaf(ctx: LeafContext) -> dict[str, Any]:
        return {"turn": 1}

    store = backend.open()
    task = asyncio.create_task(ReactiveRunner(leaf(), StateManager(Chat)).run(checkpointer=store))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    result = await ReactiveRunner(leaf(), StateManager(Chat)).run(checkpointer=store)
    assert result.outcome == "completed"
