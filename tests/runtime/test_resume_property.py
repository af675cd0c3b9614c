"""A run that dies between any two writes goes on exactly as if it had not."""

from __future__ import annotations

import copy
import operator
import zlib
from collections.abc import Callable
from random import Random
from typing import Annotated, Any

import pytest
from py_trees.behaviour import Behaviour
from py_trees.common import Status
from pydantic import BaseModel

from jianmu import AsyncNode, ReactiveRunner, StateManager
from jianmu.errors import LivelockError, StalledError
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext
from tests.support.trees import random_tree

Op = tuple[str, tuple[Any, ...], dict[str, Any]]
MAX_TICKS = 40


class Log(BaseModel):
    log: Annotated[list[str], operator.add] = []


class RecordingCheckpointer(InMemoryCheckpointer):
    """Remembers every write, so that a crash after any of them can be acted out."""

    def __init__(self, ops: list[Op] | None = None) -> None:
        super().__init__(history=None)
        self.ops: list[Op] = []
        for name, args, kwargs in ops or []:
            getattr(self, name)(*args, **kwargs)
        self.ops = []

    def save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        super().save_checkpoint(*args, **kwargs)
        self.ops.append(("save_checkpoint", copy.deepcopy(args), copy.deepcopy(kwargs)))

    def append_journal(self, *args: Any, **kwargs: Any) -> None:
        super().append_journal(*args, **kwargs)
        self.ops.append(("append_journal", copy.deepcopy(args), kwargs))

    def trim_journal(self, *args: Any, **kwargs: Any) -> None:
        super().trim_journal(*args, **kwargs)
        self.ops.append(("trim_journal", copy.deepcopy(args), kwargs))


class Work(AsyncNode):
    """Ends at its first turn; its result and the number of effects follow from where and when it runs."""

    def __init__(self, seed: int, name: str, effects: list[str]) -> None:
        super().__init__(name)
        self.seed = seed
        self.effects = effects

    async def run(self, ctx: LeafContext) -> Any:
        dice = zlib.crc32(f"{self.seed}/{ctx.path}/{ctx.activation}".encode())
        for n in range(dice % 3):
            await ctx.once(f"e{n}", lambda: self.effects.append(ctx.idempotency_key))
        if dice % 7 == 0:
            raise ValueError("as the dice fell")
        ctx.update({"log": [f"{ctx.path}#{ctx.activation}"]})
        return dice % 5 > 1


class Plain(Behaviour):
    """A plain behaviour of a user, with data of its own."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name)
        self.seed = seed
        self.count = 0

    def update(self) -> Status:
        self.count += 1
        dice = zlib.crc32(f"{self.seed}/{self.count}".encode()) % 4
        return (Status.SUCCESS, Status.FAILURE, Status.RUNNING, Status.SUCCESS)[dice]

    def dump(self) -> int:
        return self.count

    def load(self, data: int) -> None:
        self.count = data


def make_tree(seed: int, effects: list[str]) -> Behaviour:
    def leaf(rng: Random) -> Behaviour:
        if rng.random() < 0.2:
            return Plain(rng.choice("ab"), seed)
        return Work(seed, rng.choice("ab"), effects)

    return random_tree(Random(seed), leaf)


async def run(seed: int, checkpointer: RecordingCheckpointer, effects: list[str], interval: int) -> str:
    runner = ReactiveRunner(make_tree(seed, effects), StateManager(Log))
    try:
        result = await runner.run(checkpointer=checkpointer, thread_id="t", checkpoint_interval=interval)
    except (StalledError, LivelockError) as error:
        return type(error).__name__
    return f"{result.status} {result.outcome} {result.step} {result.state}"


class Enough(Exception):
    pass


class Bounded(RecordingCheckpointer):
    """Ends a run that would never end; not by `max_ticks`, whose save a continued run would not make."""

    def __init__(self, ops: list[Op], limit: int) -> None:
        self.limit = limit
        super().__init__(ops)

    def save_checkpoint(self, thread_id: str, step: int, *args: Any, **kwargs: Any) -> None:
        if step > self.limit:
            raise Enough
        super().save_checkpoint(thread_id, step, *args, **kwargs)


async def bounded(seed: int, ops: list[Op], effects: list[str], interval: int) -> tuple[str, list[Op]]:
    checkpointer = Bounded(ops, MAX_TICKS)
    try:
        return await run(seed, checkpointer, effects, interval), checkpointer.ops
    except Enough:
        return "enough", checkpointer.ops


def saves(ops: list[Op]) -> list[Op]:
    """The saved steps, without the time that is left to a Timeout."""
    saved = copy.deepcopy([op for op in ops if op[0] == "save_checkpoint"])
    for _, _, kwargs in saved:
        for values in kwargs["runtime_metadata"]["runner"]["tree"]["attributes"].values():
            values.pop("finish_time", None)
    return saved


async def check(seed: int, interval: int, points: Callable[[int], list[int]]) -> int:
    effects: list[str] = []
    outcome, ops = await bounded(seed, [], effects, interval)
    for point in points(len(ops)):
        again: list[str] = []
        outcome_again, rest = await bounded(seed, ops[:point], again, interval)
        assert outcome_again == outcome, f"seed {seed}, crash after write {point} of {len(ops)}"
        done = sum(1 for op in ops[:point] if op[0] == "append_journal")
        assert effects[:done] + again == effects, f"seed {seed}, crash after write {point}"
        if interval == 1:
            for op, op_again in zip(saves(ops[point:]), saves(rest), strict=True):
                assert op_again == op, f"seed {seed}, crash after write {point} of {len(ops)}"
    return len(ops)


def after_each_write(count: int) -> list[int]:
    return list(range(1, count))


@pytest.mark.parametrize("block", range(4))
async def test_a_crash_after_any_write_changes_nothing(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        await check(seed, 1, after_each_write)


async def test_a_crash_after_any_write_with_a_longer_interval_repeats_no_effect() -> None:
    for seed in range(300, 350):
        await check(seed, 3, after_each_write)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_crash_after_any_write_of_a_thousand_trees_changes_nothing() -> None:
    for seed in range(1_000, 2_000):
        await check(seed, 1 + seed % 3, after_each_write)
