"""Random trees whose result does not depend on timing, so that a killed run can be held against a whole one.

A leaf's outcome depends on its path and activation alone. Where py_trees itself makes a result depend on how
often the tree is ticked (children before a RUNNING one in a composite without memory, the losers of a
Parallel), the tree has leaves without effects in that place.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Protocol

from py_trees import behaviours, composites, decorators, timers
from py_trees.behaviour import Behaviour
from py_trees.common import OneShotPolicy, ParallelPolicy, Status
from pydantic import BaseModel

from jianmu.runtime import LeafContext, node

__all__ = ["Effects", "Log", "random_tree"]

NAMES = ("work", "work", "check", "任务")  # few, so that many nodes share one


class Log(BaseModel):
    """The state: what was committed, by path and activation."""

    committed: Annotated[list[str], operator.add] = []
    published: Annotated[list[str], operator.add] = []
    runs: int = 0


class Effects(Protocol):
    """The outside world."""

    def happen(self, key: str) -> str:
        """Do the effect known as `key`; return its receipt."""
        ...

    def answered(self, key: str) -> None:
        """Note that `once` returned, so the answer is saved."""
        ...


@dataclass(frozen=True)
class Plan:
    """What one leaf does."""

    effects: int
    pause: float
    outcomes: tuple[bool, ...]
    publishes: bool
    threaded: bool


def leaf(rng: Random, effects: Effects, may_fail: bool) -> Behaviour:
    failures = rng.choice((0, 0, 0, 1, 2)) if may_fail else 0
    plan = Plan(
        effects=rng.choice((0, 1, 1, 2, 3)),
        pause=rng.choice((0.0, 0.0, 0.0005, 0.002)),
        outcomes=(*[False] * failures, True),
        publishes=rng.random() < 0.2,
        threaded=rng.random() < 0.2,
    )

    @node
    async def act(ctx: LeafContext) -> bool:
        return await perform(ctx, plan, effects)

    return act(name=rng.choice(NAMES))


async def perform(ctx: LeafContext, plan: Plan, effects: Effects) -> bool:
    def effect() -> str:
        return effects.happen(ctx.idempotency_key)

    async def in_thread() -> str:
        key = ctx.idempotency_key
        return await asyncio.to_thread(effects.happen, key)

    me = f"{ctx.path}#{ctx.activation}"
    for number in range(plan.effects):
        receipt = await ctx.once(f"e{number}", in_thread if plan.threaded else effect)
        effects.answered(receipt)
        ctx.update({"committed": [f"{me}:e{number}"]})
        if plan.pause:
            await asyncio.sleep(plan.pause)
    if plan.publishes:
        await ctx.publish("note", {"published": [me]})
    ctx.update({"committed": [me]})
    return plan.outcomes[(ctx.activation - 1) % len(plan.outcomes)]


def random_tree(seed: int, effects: Effects, depth: int = 6) -> Behaviour:
    """Build the tree of `seed`: all supported composites and decorators, at most `depth` deep."""
    rng = Random(seed)
    children = [_branch(rng, effects, depth - 1, True) for _ in range(rng.randint(2, 4))]
    return composites.Sequence("root", True, [decorators.FailureIsSuccess("keep on", c) for c in children])


def _branch(rng: Random, effects: Effects, depth: int, may_fail: bool) -> Behaviour:
    if depth <= 0 or rng.random() < 0.25:
        return _small(rng) if rng.random() < 0.15 else leaf(rng, effects, may_fail)
    build = rng.choice((_memory, _memory, _no_memory, _parallel, _first_of, _decorated, _decorated))
    return build(rng, effects, depth, may_fail)


def _small(rng: Random) -> Behaviour:
    name = rng.choice(NAMES)
    return rng.choice(
        (
            lambda: behaviours.Success(name),
            lambda: behaviours.TickCounter(
                name=name, duration=rng.randint(0, 3), completion_status=Status.SUCCESS
            ),
            lambda: behaviours.StatusQueue(name, [Status.RUNNING, Status.SUCCESS], Status.SUCCESS),
            lambda: timers.Timer(name, duration=0.003),
        )
    )()


def _memory(rng: Random, effects: Effects, depth: int, may_fail: bool) -> Behaviour:
    kind: Callable[..., Behaviour] = rng.choice((composites.Sequence, composites.Selector))
    return kind(
        rng.choice(NAMES),
        True,
        [_branch(rng, effects, depth - 1, may_fail) for _ in range(rng.randint(1, 3))],
    )


def _no_memory(rng: Random, effects: Effects, depth: int, may_fail: bool) -> Behaviour:
    last = _branch(rng, effects, depth - 1, may_fail)
    if rng.random() < 0.5:
        return composites.Sequence(rng.choice(NAMES), False, [behaviours.Success("guard"), last])
    return composites.Selector(rng.choice(NAMES), False, [behaviours.Failure("guard"), last])


def _parallel(rng: Random, effects: Effects, depth: int, may_fail: bool) -> Behaviour:
    children = [
        decorators.FailureIsSuccess(rng.choice(NAMES), _branch(rng, effects, depth - 1, False))
        for _ in range(rng.randint(2, 3))
    ]
    return composites.Parallel(rng.choice(NAMES), ParallelPolicy.SuccessOnAll(synchronise=True), children)


def _first_of(rng: Random, effects: Effects, depth: int, may_fail: bool) -> Behaviour:
    policy = ParallelPolicy.SuccessOnOne()
    return composites.Parallel(
        rng.choice(NAMES), policy, [leaf(rng, effects, False), behaviours.Success("winner")]
    )


def _decorated(rng: Random, effects: Effects, depth: int, may_fail: bool) -> Behaviour:
    name, child = rng.choice(NAMES), _branch(rng, effects, depth - 1, may_fail)
    wrap: tuple[Callable[[], Behaviour], ...] = (
        lambda: decorators.Retry(name, child, rng.randint(2, 3)),
        lambda: decorators.Repeat(name, child, rng.randint(2, 3)),
        lambda: decorators.Inverter(name, child) if may_fail else decorators.PassThrough(name, child),
        lambda: decorators.SuccessIsFailure(name, child) if may_fail else decorators.PassThrough(name, child),
        lambda: decorators.OneShot(name, child, OneShotPolicy.ON_COMPLETION),
        lambda: decorators.Timeout(name, child, 600.0),
        lambda: decorators.EternalGuard(name, child, always),
        lambda: decorators.Count(name, child),
        lambda: decorators.PassThrough(name, child),
        lambda: decorators.FailureIsSuccess(name, child),
        lambda: decorators.Condition(name, decorators.FailureIsSuccess(name, child), Status.SUCCESS),
    )
    return rng.choice(wrap)()


def always() -> bool:
    return True


def shape(root: Behaviour) -> dict[str, Any]:
    """Count nodes by class, for the report."""
    counts: dict[str, Any] = {}
    for found in root.iterate():
        counts[type(found).__name__] = counts.get(type(found).__name__, 0) + 1
    return counts
