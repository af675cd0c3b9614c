"""Arguments of the wrong kind are refused by name, with the call to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py_trees import behaviours
from py_trees.behaviour import Behaviour
from pydantic import BaseModel

from jianmu import AsyncNode, Parallel, ReactiveRunner, Selector, Sequence, StateManager, Status, node
from jianmu.errors import ConfigError
from jianmu.memory import FileCheckpointer
from jianmu.runtime import LeafContext, ParallelPolicy


class Job(BaseModel):
    n: int = 0


@node
async def fetch(ctx: LeafContext) -> None:
    """Do nothing."""


async def plain(ctx: LeafContext) -> None:
    """Do nothing."""


def runner(**wrong: Any) -> ReactiveRunner:
    return ReactiveRunner(**{"root": fetch(), "state_manager": StateManager(Job), **wrong})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"root": fetch}, r"root is fetch.*ReactiveRunner\(fetch\(\)"),
        ({"root": plain}, r"root is the function plain.*@node"),
        ({"root": AsyncNode}, r"root is the class AsyncNode.*AsyncNode\(\.\.\.\)"),
        ({"root": [fetch()]}, r"root is a list.*Sequence\('name', memory=True, children="),
        ({"root": None}, "root is None"),
        ({"state_manager": Job}, r"state_manager is the schema Job; wrap it: StateManager\(Job\)"),
        ({"state_manager": Job(n=1)}, r"instance of Job; pass StateManager\(Job\).*input_data"),
        ({"state_manager": {"n": 1}}, "state_manager is a dict"),
        ({"state_manager": None}, "state_manager is None"),
        ({"event_bus": print}, r"event_bus is a builtin_function_or_method.*RuntimeEventBus\(\)"),
        ({"config": {"enabled": True}}, "config is a dict.*RuntimeCheckpointConfig"),
        ({"tick_period": 0}, "tick_period"),
        ({"tick_period": "5"}, "tick_period"),
        ({"tick_period": True}, "tick_period"),
    ],
)
def test_a_runner_is_not_made_of_what_it_cannot_use(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        runner(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"checkpointer": "agent.db"}, r"checkpointer is a str.*no save_checkpoint.*FileCheckpointer\("),
        ({"checkpointer": FileCheckpointer}, r"the class FileCheckpointer.*FileCheckpointer\(\.\.\.\)"),
        ({"input_data": "hello"}, "input_data is of the kind str.*dict"),
        ({"answers": True}, "answers is of the kind bool.*question.id"),
        ({"answers": [("id", 1)]}, "answers is of the kind list"),
        ({"max_ticks": "3"}, "max_ticks"),
        ({"max_ticks": 0}, "max_ticks"),
        ({"thread_id": 7}, "thread_id"),
        ({"thread_id": ""}, "thread_id"),
    ],
)
def test_a_run_is_not_begun_with_what_it_cannot_use(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        runner().run_sync(**wrong)


def test_a_dsn_given_as_checkpointer_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        runner().run_sync(checkpointer="postgresql://me:secret@host/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [Sequence, Selector])
def test_children_that_landed_in_memory_are_refused_with_the_right_spelling(kind: Any) -> None:
    slipped = kind("job", [fetch(), fetch()])
    spelling = rf"{kind.__name__}\('job', memory=True, children=\[...\]\)"
    with pytest.raises(ConfigError, match=rf"{kind.__name__} 'job' \(node 0\) is a list.*{spelling}"):
        runner(root=slipped)
    with pytest.raises(ConfigError, match=r"\(node 0/1\)"):
        runner(root=Sequence("outer", True, [fetch(), kind("job", [fetch()])]))


@pytest.mark.parametrize("policy", [[], ParallelPolicy.SuccessOnAll, None])
def test_a_parallel_without_a_policy_is_refused_with_the_right_spelling(policy: Any) -> None:
    with pytest.raises(ConfigError, match=r"policy of Parallel 'p' .*ParallelPolicy.SuccessOnAll\(\)"):
        runner(root=Parallel("p", policy, [fetch()]))


@pytest.mark.parametrize(
    "empty",
    [
        lambda: Sequence("job", memory=True),
        lambda: Selector("job", memory=False, children=[]),
        lambda: Parallel("job", ParallelPolicy.SuccessOnAll()),
    ],
)
def test_a_composite_without_children_is_refused_when_it_is_run(empty: Callable[[], Any]) -> None:
    root = empty()
    made = runner(root=Sequence("outer", True, [fetch(), root]))
    with pytest.raises(ConfigError, match=r"'job' \(node 0/1\) has no children.*'job', .*\[\.\.\.\]"):
        made.run_sync()
    root.add_child(fetch())
    assert made.run_sync().status is Status.SUCCESS


def test_a_composite_of_a_users_own_class_may_be_as_it_likes() -> None:
    class Gate(Behaviour):
        memory = "of what was"

        def update(self) -> Status:
            return Status.SUCCESS

    tree = Sequence("s", True, [Gate("gate"), behaviours.Success("end")])
    assert runner(root=tree).run_sync().status is Status.SUCCESS


@pytest.mark.parametrize("given", ["fetch", 5, Job])
def test_node_stands_on_functions_alone(given: Any) -> None:
    with pytest.raises(ConfigError, match="@node"):
        node(given)
