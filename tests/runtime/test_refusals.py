"""Trees whose position cannot be kept are refused with the remedy, at the start or at the save."""

from __future__ import annotations

from typing import Any

import py_trees
import pytest
from py_trees import behaviours, decorators
from py_trees.behaviour import Behaviour
from py_trees.common import Status
from pydantic import BaseModel

from jianmu import AsyncNode, ReactiveRunner, RestorePolicy, Selector, Sequence, StateManager, node
from jianmu.errors import NodeStateError, TreeChangedError, UnsupportedNodeError
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.runtime import LeafContext


class State(BaseModel):
    n: int = 0


async def run(tree: Behaviour, checkpointer: Any = None, **kwargs: Any) -> Any:
    checkpointer = InMemoryCheckpointer() if checkpointer is None else checkpointer
    return await ReactiveRunner(tree, StateManager(State)).run(checkpointer=checkpointer, **kwargs)


class WithAttribute(Behaviour):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.visits = 0

    def update(self) -> Status:
        self.visits += 1
        return Status.SUCCESS


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: WithAttribute("w"), "visits.*@node.*dump"),
        (lambda: behaviours.SetBlackboardVariable("w", "k", 1, True), "blackboard.*state"),
        (lambda: behaviours.UnsetBlackboardVariable("w", "k"), "blackboard.*state"),
        (lambda: decorators.StatusToBlackboard("w", behaviours.Success("s"), "k"), "blackboard.*state"),
        (lambda: decorators.ForEach("w", behaviours.Success("s"), "from", "to"), "Repeat"),
        (
            lambda: py_trees.idioms.oneshot(behaviours.Success("s"), "w", "done"),
            "blackboard.*state",
        ),
    ],
)
async def test_what_cannot_be_kept_is_refused_by_name_with_the_remedy(make: Any, remedy: str) -> None:
    with pytest.raises(UnsupportedNodeError, match=f"node 0/1.*{remedy}"):
        await run(Sequence("s", True, [behaviours.Success("first"), make()]))


async def test_without_a_checkpointer_they_run() -> None:
    result = await ReactiveRunner(WithAttribute("w"), StateManager(State)).run()
    assert result.status is Status.SUCCESS


async def test_blackboard_readers_are_no_trouble() -> None:
    tree = Selector(
        "s", True, [behaviours.CheckBlackboardVariableExists("c", "nothing"), behaviours.Success("s")]
    )
    assert (await run(tree)).status is Status.SUCCESS


async def test_an_attribute_that_appears_later_fails_the_save() -> None:
    class Sneaky(Behaviour):
        def update(self) -> Status:
            self.secret = 1
            return Status.SUCCESS

    checkpointer = InMemoryCheckpointer()
    with pytest.raises(NodeStateError, match=r"node 0/0 .*secret.*dump"):
        await run(Sequence("s", True, [Sneaky("n")]), checkpointer)
    assert checkpointer.get_checkpoint("default") is None


async def test_a_leaf_class_may_have_configuration_but_no_new_attributes() -> None:
    class Greeter(AsyncNode):
        def __init__(self, greeting: str, sneaky: bool = False) -> None:
            super().__init__()
            self.greeting = greeting
            self.sneaky = sneaky

        async def run(self, ctx: LeafContext) -> None:
            if self.sneaky:
                self.result = self.greeting

    assert (await run(Greeter("hi"))).status is Status.SUCCESS
    with pytest.raises(NodeStateError, match="result"):
        await run(Greeter("hi", sneaky=True))


class Counter(Behaviour):
    """Keeps its data by itself."""

    def __init__(self) -> None:
        super().__init__("counter")
        self.visits = 0

    def update(self) -> Status:
        self.visits += 1
        return Status.SUCCESS if self.visits == 4 else Status.RUNNING

    def dump(self) -> dict[str, int]:
        return {"visits": self.visits}

    def load(self, data: dict[str, int]) -> None:
        self.visits = data["visits"]


async def test_dump_and_load_keep_a_users_data_and_count_as_progress() -> None:
    checkpointer = InMemoryCheckpointer()
    assert (await run(Counter(), checkpointer, max_ticks=2)).outcome == "max_ticks"
    again = Counter()
    assert (await run(again, checkpointer)).ticks == 2
    assert again.visits == 4


@node
async def work(ctx: LeafContext) -> None:
    await ctx.ask("go?")


@node
async def other(ctx: LeafContext) -> None:
    await ctx.ask("go?")


@pytest.mark.parametrize(
    ("tree", "difference"),
    [
        (lambda: Sequence("s", True, [work(), work(name="y")]), "node 0/1 work 'x'.*now.*work 'y'"),
        (lambda: Sequence("s", True, [work(), other(name="x")]), "node 0/1 work 'x'.*now.*other 'x'"),
        (lambda: Sequence("s", False, [work(), work(name="x")]), "memory=True.*memory=False"),
        (lambda: Selector("s", True, [work(), work(name="x")]), "Sequence.*Selector"),
        (lambda: Sequence("s", True, [work()]), "node 0/1 work 'x' is gone"),
        (lambda: Sequence("s", True, [work(), work(name="x"), work()]), "node 0/2 .*was not"),
    ],
)
async def test_another_tree_is_refused_with_the_first_difference(tree: Any, difference: str) -> None:
    checkpointer = InMemoryCheckpointer()
    await run(Sequence("s", True, [work(), work(name="x")]), checkpointer, max_ticks=2)
    before = checkpointer.get_checkpoint("default")
    with pytest.raises(TreeChangedError, match=difference):
        await run(tree(), checkpointer)
    assert checkpointer.get_checkpoint("default") == before
    fresh = await run(tree(), checkpointer, restore_policy=RestorePolicy.NEVER, max_ticks=1)
    assert fresh.outcome == "max_ticks"


async def test_a_tree_of_more_than_two_hundred_levels_is_refused() -> None:
    tree: Behaviour = behaviours.Success("leaf")
    for _ in range(199):
        tree = decorators.PassThrough("p", tree)
    assert (await run(tree)).status is Status.SUCCESS
    tree.parent = None
    with pytest.raises(UnsupportedNodeError, match="deeper than 200"):
        await run(decorators.PassThrough("p", tree))


async def test_a_node_in_two_places_is_refused() -> None:
    leaf = behaviours.Success("leaf")
    with pytest.raises(UnsupportedNodeError, match="twice"):
        await run(Sequence("s", True, [decorators.PassThrough("p", leaf), decorators.PassThrough("p", leaf)]))


async def test_a_finished_run_may_go_on_with_another_tree_but_its_result_is_not_the_other_ones() -> None:
    @node
    async def count(ctx: LeafContext) -> dict[str, int]:
        return {"n": ctx.state.n + 1}

    checkpointer = InMemoryCheckpointer()
    await run(Sequence("s", True, [count()]), checkpointer)
    before = checkpointer.get_checkpoint("default")
    with pytest.raises(TreeChangedError, match=r"'default'.*'s'.*'t'.*had ended.*stored result.*input_data="):
        await run(Sequence("t", True, [count(), count()]), checkpointer)
    assert checkpointer.get_checkpoint("default") == before
    grown = await run(Sequence("t", True, [count(), count()]), checkpointer, input_data={"n": 5})
    assert (grown.status, grown.state.n) == (Status.SUCCESS, 7)
