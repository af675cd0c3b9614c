"""What a back end promises, as a run sees it: damage told, deleted threads gone, history to go back to."""

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import ReactiveRunner, RuntimeCheckpointConfig, RuntimeEventBus, Sequence, StateManager, node
from jianmu.errors import CheckpointCorruptError, LeaseLostError, ThreadBusyError
from jianmu.memory import FileCheckpointer, InMemoryCheckpointer


class Log(BaseModel):
    log: Annotated[list[str], operator.add] = []


@node
async def one(ctx: Any) -> dict[str, Any]:
    return {"log": ["one"]}


@node
async def two(ctx: Any) -> dict[str, Any]:
    return {"log": ["two"]}


def runner(*leaves: Any, **options: Any) -> ReactiveRunner:
    root = Sequence("root", memory=True, children=[leaf() for leaf in leaves or (one, two)])
    return ReactiveRunner(root, StateManager(Log), **options)


async def test_a_torn_end_is_told_on_the_event_bus_and_the_run_goes_on(tmp_path: Path) -> None:
    await runner().run(checkpointer=FileCheckpointer(tmp_path), thread_id="t", max_ticks=1)
    path = tmp_path / "t.jsonl"
    path.write_bytes(path.read_bytes() + b'{"step":9,"state":{"lo')
    bus = RuntimeEventBus()
    events: list[Any] = []
    bus.subscribe(events.append)
    result = await runner(event_bus=bus).run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    assert result.outcome == "completed"
    assert result.state.log == ["one", "two"]
    (damaged,) = [event for event in events if event.type == "checkpoint.damaged"]
    assert damaged.payload["thread_id"] == "t"


async def test_a_damaged_record_stops_the_run_and_the_way_out_works(tmp_path: Path) -> None:
    await runner().run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    path = tmp_path / "t.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"two"', b'"TWO"')
    path.write_bytes(b"".join(lines))
    with pytest.raises(CheckpointCorruptError) as raised:
        await runner().run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    step = raised.value.previous_step
    assert step is not None
    FileCheckpointer(tmp_path).truncate_thread("t", step=step)
    result = await runner().run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    assert result.state.log == ["one", "two"]


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_a_thread_deleted_during_a_run_is_not_brought_back(tmp_path: Path, kind: str) -> None:
    store = FileCheckpointer(tmp_path) if kind == "file" else InMemoryCheckpointer()

    @node
    async def deleter(ctx: Any) -> bool:
        return store.delete_thread("t")

    with pytest.raises(LeaseLostError):
        await runner(one, deleter, two).run(checkpointer=store, thread_id="t")
    assert store.get_checkpoint("t") is None
    assert store.list_threads() == []
    result = await runner(one, two).run(checkpointer=store, thread_id="t")
    assert result.state.log == ["one", "two"]


async def test_a_second_run_of_the_thread_is_turned_away(tmp_path: Path) -> None:
    @node
    async def rival(ctx: Any) -> bool:
        with pytest.raises(ThreadBusyError):
            await runner().run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
        return True

    result = await runner(one, rival).run(checkpointer=FileCheckpointer(tmp_path), thread_id="t")
    assert result.outcome == "completed"
    assert result.state.log == ["one"]


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_a_run_goes_back_to_a_step_in_place_or_in_a_fork(tmp_path: Path, kind: str) -> None:
    store = FileCheckpointer(tmp_path) if kind == "file" else InMemoryCheckpointer()
    await runner().run(checkpointer=store, thread_id="t")
    steps = [info.step for info in store.list_checkpoints("t")][::-1]
    states = {step: store.get_checkpoint("t", step=step)["state"] for step in steps}  # type: ignore[index]
    early = next(step for step in steps if states[step].get("log") == ["one"])
    forked = await runner().run(checkpointer=store, thread_id="t", from_step=early, fork_to="fork")
    assert forked.state.log == ["one", "two"]
    assert [info.step for info in store.list_checkpoints("t")][::-1] == steps
    result = await runner().run(checkpointer=store, thread_id="t", from_step=early, truncate=True)
    assert result.state.log == ["one", "two"]
    assert store.list_threads() == ["fork", "t"]


async def test_an_enabled_config_makes_the_checkpointer(tmp_path: Path) -> None:
    config = RuntimeCheckpointConfig(enabled=True, backend="file", path=tmp_path / "here")
    await runner(config=config).run(thread_id="t")
    envelope = FileCheckpointer(tmp_path / "here").get_checkpoint("t")
    assert envelope is not None
    assert envelope["state"]["log"] == ["one", "two"]
