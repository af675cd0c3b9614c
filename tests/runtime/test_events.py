"""What a run tells the bus, and that listeners cannot disturb it."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, RuntimeEventBus, Sequence, StateManager, Status, node
from jianmu.errors import RunError
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    n: int = 0


@node
async def good(ctx: LeafContext) -> dict[str, Any]:
    ctx.emit("my.event", {"k": 1})
    return {"n": 1}


@node
async def bad(ctx: LeafContext) -> None:
    raise ValueError("no")


async def test_ticks_statuses_failures_and_own_events_are_told() -> None:
    bus = RuntimeEventBus()
    events: list[Any] = []
    bus.subscribe(events.append)
    tree = Sequence("s", True, [good(name="g"), bad(name="b")])
    await ReactiveRunner(tree, StateManager(State), bus).run(thread_id="t")
    told = [(event.type, event.payload) for event in events]
    assert [payload["step"] for type, payload in told if type == "tick"] == [1, 2, 3]
    statuses = [
        (payload["path"], payload["name"], payload["previous"], payload["status"])
        for type, payload in told
        if type == "node.status" and payload["path"] == "0/0"
    ]
    assert statuses == [("0/0", "g", "INVALID", "RUNNING"), ("0/0", "g", "RUNNING", "SUCCESS")]
    assert ("my.event", {"thread_id": "t", "path": "0/0", "k": 1}) in told
    failed = next(payload for type, payload in told if type == "leaf.failed")
    assert (failed["path"], failed["error"], failed["message"]) == ("0/1", "ValueError", "no")


async def test_a_stuck_listener_costs_a_run_two_seconds_at_most() -> None:
    bus = RuntimeEventBus()
    release = threading.Event()
    bus.subscribe(lambda event: release.wait(30))
    start = time.monotonic()
    result = await ReactiveRunner(good(), StateManager(State), bus).run()
    assert result.status is Status.SUCCESS
    assert time.monotonic() - start < 3
    release.set()


async def test_damage_that_a_back_end_mended_is_told(tmp_path: Any) -> None:
    checkpointer = FileCheckpointer(tmp_path)
    await ReactiveRunner(good(), StateManager(State)).run(checkpointer=checkpointer, max_ticks=1)
    [file] = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes() + b'{"torn')
    runner = ReactiveRunner(good(), StateManager(State))
    damage: list[Any] = []
    runner.event_bus.subscribe(lambda event: damage.append(event.payload), types={"checkpoint.damaged"})
    assert (await runner.run(checkpointer=FileCheckpointer(tmp_path))).state.n == 1
    assert {each["thread_id"] for each in damage} == {"default"}


async def test_build_context_hands_over_the_committed_state_and_the_thread() -> None:
    class Builder:
        def build(self, state: State, **kwargs: Any) -> Any:
            return [state.n, kwargs]

    seen: list[Any] = []

    @node
    async def leaf(ctx: LeafContext) -> None:
        ctx.update({"n": 9})
        seen.append(await ctx.build_context(tools=["t"]))

    await ReactiveRunner(leaf(), StateManager(State), context=Builder()).run({"n": 3}, thread_id="t")
    assert seen == [[3, {"thread_id": "t", "tools": ["t"]}]]
    result = await ReactiveRunner(leaf(), StateManager(State)).run()
    assert isinstance(result.errors["0"], RunError)


async def test_a_leaf_outside_a_run_says_so() -> None:
    with pytest.raises(RunError, match="ReactiveRunner"):
        good().tick_once()
