"""What each kind of py_trees node remembers between ticks, beside its status and its current child.

The table was read from py_trees 2.6 and is proved by the crash tests. A node's attributes are either fixed
when it is built (`fixed`) or its position (`position`), which is saved and restored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from py_trees import behaviours, composites, decorators, timers
from py_trees.behaviour import Behaviour
from py_trees.common import Status

from jianmu.runtime.leaf import Ask, AsyncNode, ConditionNode, FunctionNode

__all__ = ["Attribute", "fixed_attributes", "is_known", "position_attributes", "refusal"]


def _same(value: Any) -> Any:
    return value


def _status_name(status: Status | None) -> str | None:
    return None if status is None else status.name


def _status(name: str | None) -> Status | None:
    return None if name is None else Status[name]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute that is part of a node's position.

    Attributes:
        name: The attribute.
        fresh: Gives its value in a node that was never ticked.
        encode: Its value as plain JSON data.
        decode: The way back.
        counts: Whether a change of it is progress, which is worth another tick.
    """

    name: str
    fresh: Callable[[Any], Any]
    encode: Callable[[Any], Any] = _same
    decode: Callable[[Any], Any] = _same
    counts: bool = True


def _counter(name: str) -> Attribute:
    return Attribute(name, lambda node: 0)


_WALL_DEADLINE = Attribute("finish_time", lambda node: 0.0, counts=False)
_MONOTONIC_DEADLINE = Attribute(
    "finish_time",
    lambda node: 0.0,
    encode=lambda at: at - time.monotonic() if at else None,
    decode=lambda left: 0.0 if left is None else time.monotonic() + left,
    counts=False,
)

_POSITION: dict[type, tuple[Attribute, ...]] = {
    AsyncNode: (_counter("activation"),),
    behaviours.Periodic: (
        _counter("count"),
        Attribute("response", lambda node: Status.RUNNING, _status_name, _status),
    ),
    behaviours.StatusQueue: (
        Attribute(
            "current_queue",
            lambda node: list(node.queue),
            lambda queue: [status.name for status in queue],
            lambda names: [Status[name] for name in names],
        ),
    ),
    behaviours.SuccessEveryN: (_counter("count"),),
    behaviours.TickCounter: (_counter("counter"),),
    timers.Timer: (_WALL_DEADLINE,),
    decorators.Repeat: (_counter("success"),),
    decorators.Retry: (_counter("failures"),),
    decorators.Timeout: (_MONOTONIC_DEADLINE,),
    decorators.OneShot: (Attribute("final_status", lambda node: None, _status_name, _status),),
    # A Count counts ticks, so that a change is no progress: it would cause the next one for ever.
    decorators.Count: tuple(
        Attribute(name, lambda node: 0, counts=False)
        for name in ("total_tick_count", "failure_count", "success_count", "running_count", "interrupt_count")
    ),
}

_NAMES: dict[type, str] = {
    Behaviour: "id name blackboards qualified_name status iterator parent children logger "
    "feedback_message blackbox_level",
    AsyncNode: "error _host _activity",
    FunctionNode: "_function _arguments",
    ConditionNode: "_function _arguments",
    Ask: "_payload _into _key",
    behaviours.Success: "",
    behaviours.Failure: "",
    behaviours.Running: "",
    behaviours.Dummy: "",
    behaviours.Periodic: "period",
    behaviours.StatusQueue: "queue eventually",
    behaviours.SuccessEveryN: "every_n",
    behaviours.TickCounter: "completion_status duration",
    behaviours.ProbabilisticBehaviour: "_population _weights",
    behaviours.BlackboardToStatus: "key key_attributes variable_name blackboard",
    behaviours.CheckBlackboardVariableExists: "key key_attributes variable_name blackboard",
    behaviours.WaitForBlackboardVariable: "",
    behaviours.CheckBlackboardVariableValue: "check key key_attributes blackboard",
    behaviours.WaitForBlackboardVariableValue: "",
    behaviours.CheckBlackboardVariableValues: "checks operator blackboard blackboard_results",
    behaviours.CompareBlackboardVariables: "var1_key var2_key operator blackboard",
    timers.Timer: "duration",
    composites.Composite: "current_child",
    composites.Sequence: "memory",
    composites.Selector: "memory",
    composites.Parallel: "policy",
    decorators.Decorator: "decorated",
    decorators.Repeat: "num_success",
    decorators.Retry: "num_failures",
    decorators.Timeout: "duration",
    decorators.OneShot: "policy",
    decorators.Count: "",
    decorators.EternalGuard: "blackboard condition",
    decorators.Condition: "succeed_status",
    decorators.Inverter: "",
    decorators.PassThrough: "",
    decorators.RunningIsFailure: "",
    decorators.RunningIsSuccess: "",
    decorators.FailureIsSuccess: "",
    decorators.FailureIsRunning: "",
    decorators.SuccessIsFailure: "",
    decorators.SuccessIsRunning: "",
}

_FIXED = {kind: frozenset(names.split()) for kind, names in _NAMES.items()}


def position_attributes(node: Behaviour) -> tuple[Attribute, ...]:
    """Return the attributes of `node` that belong to its position."""
    return tuple(attribute for kind in type(node).__mro__ for attribute in _POSITION.get(kind, ()))


def fixed_attributes(node: Behaviour) -> frozenset[str]:
    """Return the names of all attributes that py_trees and jianmu themselves give `node`."""
    fixed = {name for kind in type(node).__mro__ for name in _FIXED.get(kind, ())}
    return frozenset(fixed | {attribute.name for attribute in position_attributes(node)})


def is_known(node: Behaviour) -> bool:
    """Whether `node` is of a kind whose position is fully described by the table, without subclassing."""
    return type(node) in _FIXED


def refusal(node: Behaviour) -> str | None:
    """Return why the position of `node` cannot be saved, with the remedy, or None if it can."""
    if isinstance(node, decorators.ForEach):
        return (
            "a ForEach keeps its iterator out of reach; keep the items and an index in the state and "
            "loop with Repeat over a leaf that takes the next one"
        )
    if any(_writes(client) for client in node.blackboards):
        return (
            "it writes to the py_trees blackboard, which is shared by the whole process and not saved; "
            "keep the value in the state instead (a leaf returns {field: value})"
        )
    if is_known(node):
        return None
    if type(node).__module__.startswith("py_trees."):
        return "this kind is not in jianmu's table; use a leaf made with @node instead"
    own = sorted(own_attributes(node))
    if own and not isinstance(node, AsyncNode) and not has_dump(node):
        return (
            f"it has attributes of its own that are not saved ({', '.join(own)}); make it a leaf with "
            "@node and keep the data in the state, or give the class dump() -> plain data and load(data)"
        )
    return None


def _writes(client: Any) -> bool:
    return bool(client.write or client.exclusive)


def own_attributes(node: Behaviour) -> set[str]:
    """Return the names of the attributes that a user's class or code gave `node`."""
    return set(vars(node)) - fixed_attributes(node)


def has_dump(node: Behaviour) -> bool:
    """Whether `node` saves its own data by `dump()` and `load(data)`."""
    return callable(getattr(node, "dump", None)) and callable(getattr(node, "load", None))


def deadlines(nodes: list[Behaviour]) -> Iterator[timers.Timer | decorators.Timeout]:
    """Return the nodes that wait for a point in time."""
    return (node for node in nodes if isinstance(node, timers.Timer | decorators.Timeout))
