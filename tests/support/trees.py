"""Random behaviour trees from a seed: every supported composite and decorator, equal names."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from py_trees import behaviours, decorators
from py_trees.behaviour import Behaviour
from py_trees.common import OneShotPolicy, ParallelPolicy, Status
from py_trees.composites import Parallel, Selector, Sequence

__all__ = ["random_tree"]

LeafFactory = Callable[[Random], Behaviour]
NAMES = ("a", "a", "b")
"""Few, so that equal names are the rule."""

_TRANSLATING = (
    decorators.PassThrough,
    decorators.Count,
    decorators.Inverter,
    decorators.FailureIsSuccess,
    decorators.SuccessIsFailure,
)
_INTERRUPTING = (decorators.RunningIsFailure, decorators.RunningIsSuccess)
_ENDLESS = (decorators.SuccessIsRunning, decorators.FailureIsRunning)


def random_tree(
    rng: Random,
    leaf_factory: LeafFactory,
    *,
    max_depth: int = 6,
    max_children: int = 4,
    races: bool = True,
) -> Behaviour:
    """Return a tree; the same `rng` seed and arguments give the same tree.

    Args:
        rng: Where every choice comes from.
        leaf_factory: Called as ``leaf_factory(rng)`` for each leaf that works.
        max_depth: Levels at most, the root's included.
        max_children: Children of a composite at most.
        races: Whether to use what makes the outcome depend on the order in which leaves end, or on the number
            of ticks: a Parallel whose children can fail or that ends with the first, decorators that
            interrupt, py_trees' own ticking leaves, trees that may never end. Without, every tree ends, and
            what it did depends on its leaves alone (their results may depend on path and activation).
    """
    return _Builder(rng, leaf_factory, max_children, races).node(max_depth)


class _Builder:
    def __init__(self, rng: Random, leaf_factory: LeafFactory, max_children: int, races: bool) -> None:
        self.rng = rng
        self.leaf_factory = leaf_factory
        self.max_children = max_children
        self.races = races

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def node(self, depth: int) -> Behaviour:
        if depth <= 1 or self.rng.random() < 0.15:
            return self.leaf()
        return self.composite(depth) if self.rng.random() < 0.6 else self.decorator(depth)

    def leaf(self) -> Behaviour:
        if self.rng.random() < 0.75:
            return self.leaf_factory(self.rng)
        if self.races:
            return self.ticking_leaf()
        return self.rng.choice([behaviours.Success, behaviours.Failure])(self.name())

    def ticking_leaf(self) -> Behaviour:
        rng, name = self.rng, self.name()
        choice = rng.randrange(6)
        if choice == 0:
            return behaviours.TickCounter(
                name, rng.randint(0, 3), rng.choice([Status.SUCCESS, Status.FAILURE])
            )
        if choice == 1:
            return behaviours.Periodic(name, rng.randint(1, 3))
        if choice == 2:
            queue = rng.choices([Status.SUCCESS, Status.FAILURE, Status.RUNNING], k=rng.randint(1, 4))
            return behaviours.StatusQueue(name, queue, rng.choice([None, Status.SUCCESS, Status.FAILURE]))
        if choice == 3:
            return behaviours.SuccessEveryN(name, rng.randint(1, 3))
        return rng.choice([behaviours.Success, behaviours.Failure])(name)

    def composite(self, depth: int) -> Behaviour:
        rng, name = self.rng, self.name()
        count = rng.randint(1, self.max_children)
        if rng.random() < 0.3:
            return self.parallel(name, [self.node(depth - 1) for _ in range(count)])
        kind = rng.choice([Sequence, Selector])
        if rng.random() < 0.7:
            return kind(name, True, [self.node(depth - 1) for _ in range(count)])
        # Without memory, work before the last child would be done again each tick: only guards stand there.
        guards = [self.guard() for _ in range(count - 1)]
        return kind(name, False, [*guards, self.node(depth - 1)])

    def guard(self) -> Behaviour:
        if self.races and self.rng.random() < 0.5:
            return self.ticking_leaf()
        return self.rng.choice([behaviours.Success, behaviours.Failure])(self.name())

    def parallel(self, name: str, children: list[Behaviour]) -> Behaviour:
        rng = self.rng
        if not self.races:
            # No child of it can fail, so none is interrupted by another.
            children = [decorators.FailureIsSuccess(self.name(), child) for child in children]
            return Parallel(name, ParallelPolicy.SuccessOnAll(synchronise=True), children)
        choice = rng.randrange(4)
        if choice == 0:
            return Parallel(name, ParallelPolicy.SuccessOnOne(), children)
        if choice == 1:
            chosen = rng.sample(children, rng.randint(1, len(children)))
            return Parallel(name, ParallelPolicy.SuccessOnSelected(chosen, rng.random() < 0.5), children)
        return Parallel(name, ParallelPolicy.SuccessOnAll(synchronise=choice == 2), children)

    def decorator(self, depth: int) -> Behaviour:
        rng, name, child = self.rng, self.name(), self.node(depth - 1)
        choice = rng.random()
        if choice < 0.15:
            return decorators.Retry(name, child, rng.randint(1, 3))
        if choice < 0.3:
            return decorators.Repeat(name, child, rng.randint(1, 3))
        if choice < 0.4:
            return decorators.OneShot(name, child, rng.choice(list(OneShotPolicy)))
        if choice < 0.45:
            return decorators.Timeout(name, child, duration=3600.0)
        if choice < 0.5:
            return decorators.EternalGuard(name, child, condition=_always)
        if self.races and choice < 0.6:
            return rng.choice(_INTERRUPTING)(name, child)
        if self.races and choice < 0.65:
            return rng.choice(_ENDLESS)(name, child)
        if self.races and choice < 0.7:
            return decorators.Condition(name, child, rng.choice([Status.SUCCESS, Status.FAILURE]))
        return rng.choice(_TRANSLATING)(name, child)


def _always() -> bool:
    return True
