"""When steps are saved and what becomes of a save that fails."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from py_trees import behaviours
from py_trees.common import Status
from pydantic import BaseModel

from jianmu import ReactiveRunner, Selector, Sequence, StateManager, SuspensionMode, node
from jianmu.errors import ConfigError, EncodeError, StateValidationError, StorageError
from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.memory.checkpoint.null import NullCheckpointer
from jianmu.project import RuntimeCheckpointConfig
from jianmu.runtime import LeafContext


class State(BaseModel):
    log: Annotated[list[str], operator.add] = []
    anything: Any = None


@node
async def say(ctx: LeafContext, what: Any) -> dict[str, Any]:
    return {"log": [what]}


def heard(runner: ReactiveRunner, *types: str) -> list[Any]:
    events: list[Any] = []
    runner.event_bus.subscribe(
        lambda event: events.append((event.type, dict(event.payload))), types=types or None
    )
    return events


async def test_every_tick_is_saved_and_told(checkpointer: Any) -> None:
    runner = ReactiveRunner(behaviours.TickCounter("t", 3, Status.SUCCESS), StateManager(State))
    events = heard(runner, "checkpoint.saved", "checkpoint.restored")
    await runner.run(checkpointer=checkpointer, thread_id="t")
    assert events == [
        ("checkpoint.saved", {"thread_id": "t", "step": step, "forced": step == 4}) for step in (1, 2, 3, 4)
    ]
    events.clear()
    await runner.run(checkpointer=checkpointer, thread_id="t")
    assert events == [("checkpoint.restored", {"thread_id": "t", "has_state": True, "has_tree_state": True})]


async def test_a_longer_interval_saves_the_first_step_the_nth_and_the_last() -> None:
    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(behaviours.TickCounter("t", 7, Status.SUCCESS), StateManager(State))
    await runner.run(checkpointer=checkpointer, thread_id="t", checkpoint_interval=3)
    assert [each.step for each in checkpointer.list_checkpoints("t")] == [8, 6, 3, 1]


async def test_steps_grow_over_rounds_and_resumes(checkpointer: Any) -> None:
    steps: list[int] = []
    runner = ReactiveRunner(say("x"), StateManager(State))
    runner.event_bus.subscribe(lambda event: steps.append(event.payload["step"]), types={"checkpoint.saved"})
    for n in range(4):
        await runner.run({"log": [str(n)]}, checkpointer=checkpointer, thread_id="t")
    assert steps == sorted(set(steps))
    assert len(steps) >= 8


async def test_the_configured_checkpointer_is_made_when_none_is_given(tmp_path: Path) -> None:
    config = RuntimeCheckpointConfig(enabled=True, path=tmp_path, interval=2)
    runner = ReactiveRunner(
        behaviours.TickCounter("t", 3, Status.SUCCESS), StateManager(State), config=config
    )
    await runner.run(thread_id="t")
    assert [each.step for each in FileCheckpointer(tmp_path).list_checkpoints("t")] == [4, 2, 1]
    nothing = RuntimeCheckpointConfig(path=tmp_path / "other")
    await ReactiveRunner(say("x"), StateManager(State), config=nothing).run(thread_id="u")
    assert not (tmp_path / "other").exists()


async def test_the_null_checkpointer_never_restores() -> None:
    checkpointer = NullCheckpointer()
    for _ in range(2):
        result = await ReactiveRunner(say("x"), StateManager(State)).run(checkpointer=checkpointer)
        assert result.state.log == ["x"]


@pytest.mark.parametrize("interval", [0, -1, 1.5, True, "1"])
async def test_a_wrong_interval_is_named(interval: Any) -> None:
    with pytest.raises(ConfigError, match="checkpoint_interval"):
        await ReactiveRunner(say("x"), StateManager(State)).run(checkpoint_interval=interval)


async def test_a_value_that_cannot_be_kept_ends_the_run_and_the_last_good_step_stays() -> None:
    checkpointer = InMemoryCheckpointer()

    @node
    async def spoil(ctx: LeafContext) -> dict[str, Any]:
        return {"anything": object()}

    runner = ReactiveRunner(Sequence("s", True, [say("a"), spoil()]), StateManager(State))
    with pytest.raises(EncodeError, match="anything"):
        await runner.run(checkpointer=checkpointer)
    envelope = checkpointer.get_checkpoint("default")
    assert envelope is not None
    assert envelope["state"]["log"] == ["a"]
    assert envelope["state"]["anything"] is None


class Failing(InMemoryCheckpointer):
    def save_checkpoint(self, thread_id: str, step: int, *args: Any, **kwargs: Any) -> None:
        if step == 3:
            raise StorageError("the disk is full")
        super().save_checkpoint(thread_id, step, *args, **kwargs)


async def test_a_failed_save_ends_the_run_before_the_next_leaf_starts() -> None:
    started: list[str] = []

    @node
    async def begin(ctx: LeafContext, name: str) -> None:
        started.append(name)

    checkpointer = Failing()
    tree = Sequence("s", True, [begin("a"), begin("b"), begin("c")])
    runner = ReactiveRunner(tree, StateManager(State))
    with pytest.raises(StorageError, match="full"):
        await runner.run(checkpointer=checkpointer)
    assert started == ["a", "b"]
    assert all(each.status is not Status.RUNNING for each in tree.iterate())
    envelope = checkpointer.get_checkpoint("default")
    assert envelope is not None
    assert envelope["step"] == 2


class Slow(FileCheckpointer):
    """Its saves take a while, off the loop."""

    def save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        import time

        time.sleep(0.02)
        super().save_checkpoint(*args, **kwargs)


async def test_a_slow_save_does_not_stop_the_loop_and_keeps_the_moment_it_was_made_for(
    tmp_path: Path,
) -> None:
    state = StateManager(State)
    runner = ReactiveRunner(behaviours.TickCounter("t", 3, Status.SUCCESS), state)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    noise = asyncio.create_task(other())
    task = asyncio.create_task(runner.run(checkpointer=Slow(tmp_path), thread_id="t"))
    while runner.root.status is not Status.RUNNING:
        await asyncio.sleep(0)
    state.update({"log": ["while step 1 is being saved"]})
    await task
    noise.cancel()
    assert turns > 10
    first = FileCheckpointer(tmp_path).get_checkpoint("t", step=1)
    assert first is not None
    assert first["state"]["log"] == []


async def test_a_run_cancelled_in_the_middle_of_a_save_lets_it_end(tmp_path: Path) -> None:
    runner = ReactiveRunner(behaviours.TickCounter("t", 50, Status.SUCCESS), StateManager(State))
    task = asyncio.create_task(runner.run(checkpointer=Slow(tmp_path), thread_id="t"))
    await asyncio.sleep(0.03)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    checkpointer = FileCheckpointer(tmp_path)
    steps = [each.step for each in checkpointer.list_checkpoints("t")]
    assert steps == list(range(steps[0], 0, -1))
    again = await ReactiveRunner(behaviours.TickCounter("t", 50, Status.SUCCESS), StateManager(State)).run(
        checkpointer=checkpointer, thread_id="t"
    )
    assert again.status is Status.SUCCESS
    assert again.ticks < 51


async def test_a_checkpoint_of_state_alone_starts_the_tree_from_its_root() -> None:
    checkpointer = InMemoryCheckpointer()
    checkpointer.save_checkpoint("t", 5, {"log": ["old"]})
    runner = ReactiveRunner(say("new"), StateManager(State))
    events = heard(runner, "checkpoint.restored")
    result = await runner.run(checkpointer=checkpointer, thread_id="t")
    assert result.state.log in (["old", "new"], ["new"])
    assert result.step > 5
    assert events[0][1]["has_tree_state"] is False


async def test_a_tree_saved_without_metadata_goes_on_at_its_running_child() -> None:
    checkpointer = InMemoryCheckpointer()
    first = ReactiveRunner(Sequence("s", True, [say("a"), say("b")]), StateManager(State))
    await first.run(checkpointer=checkpointer, thread_id="t", max_ticks=2)
    envelope = checkpointer.get_checkpoint("t")
    assert envelope is not None
    assert envelope["tree"] == {"0": "RUNNING", "0/0": "SUCCESS", "0/1": "RUNNING"}
    checkpointer.save_checkpoint("u", 7, envelope["state"], envelope["tree"])
    second = ReactiveRunner(Sequence("s", True, [say("a"), say("b")]), StateManager(State))
    result = await second.run(checkpointer=checkpointer, thread_id="u")
    assert result.state.log == ["a", "b"]


async def test_a_stored_state_that_no_longer_fits_is_an_error_with_the_path() -> None:
    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(say("a"), StateManager(State))
    await runner.run(checkpointer=checkpointer, thread_id="t", max_ticks=1)
    envelope = checkpointer.get_checkpoint("t")
    assert envelope is not None
    envelope["state"]["log"] = 3
    checkpointer.save_checkpoint("t", 9, envelope["state"], envelope["tree"], envelope["runtime_metadata"])
    with pytest.raises(StateValidationError, match="log"):
        await runner.run(checkpointer=checkpointer, thread_id="t")


async def test_each_suspension_is_saved_once_and_forced() -> None:
    checkpointer = InMemoryCheckpointer()

    @node
    async def ask(ctx: LeafContext) -> None:
        await ctx.ask("ok?")

    runner = ReactiveRunner(ask(), StateManager(State))
    events = heard(runner, "checkpoint.saved")
    result = await runner.run(checkpointer=checkpointer, suspension_mode=SuspensionMode.YIELD)
    assert [payload["forced"] for _, payload in events] == [False, True]
    assert result.step == events[-1][1]["step"]


async def test_a_configured_checkpointer_serves_all_runs_of_its_runner_until_it_is_closed() -> None:
    config = RuntimeCheckpointConfig(enabled=True, backend="memory")
    with ReactiveRunner(say("a"), StateManager(State), config=config) as runner:
        await runner.run()
        again = await runner.run({"log": ["b"]})
    assert again.state.log == ["a", "b", "a"]
    runner.close()
    assert (await runner.run()).state.log == ["a"]


async def test_a_change_of_the_state_between_ticks_still_causes_its_tick_after_a_crash() -> None:
    @node
    def ready(ctx: LeafContext) -> bool:
        return bool(ctx.state.anything)

    @node
    async def wait(ctx: LeafContext) -> None:
        await ctx.ask("never answered")

    def tree() -> Selector:
        return Selector("s", False, [ready(), wait()])

    checkpointer = InMemoryCheckpointer()
    runner = ReactiveRunner(tree(), StateManager(State))
    task = asyncio.create_task(runner.run(checkpointer=checkpointer))
    while not runner.pending:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    runner.state_manager.update({"anything": True})
    runner.cancel()  # saves at once, before the tick that the change would have caused
    assert (await task).outcome == "cancelled"
    again = ReactiveRunner(tree(), StateManager(State)).run(checkpointer=checkpointer)
    assert (await asyncio.wait_for(again, 5)).status is Status.SUCCESS
