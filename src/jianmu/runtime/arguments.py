"""What a runner was given, refused by name when it cannot be what its author meant."""

from __future__ import annotations

import inspect
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.common import ParallelPolicy
from py_trees.composites import Parallel, Selector, Sequence
from pydantic import BaseModel

from jianmu.errors import ConfigError
from jianmu.events import RuntimeEventBus
from jianmu.project import RuntimeCheckpointConfig
from jianmu.runtime.leaf import LeafFactory
from jianmu.state import StateManager

__all__ = ["check_checkpointer", "check_composites", "check_runner"]


def check_runner(
    root: object, state_manager: object, event_bus: object, config: object, tick_period: object
) -> None:
    """Check what `ReactiveRunner` is made of.

    Raises:
        ConfigError: One of them is of the wrong kind; the message has the call to write.
    """
    _check_root(root)
    _check_state_manager(state_manager)
    if event_bus is not None and not callable(getattr(event_bus, "emit", None)):
        raise ConfigError(f"event_bus is {_a(event_bus)}; pass a {RuntimeEventBus.__name__}(), or None")
    if config is not None and not isinstance(config, RuntimeCheckpointConfig):
        raise ConfigError(f"config is {_a(config)}; pass RuntimeCheckpointConfig(enabled=True, ...), or None")
    is_number = isinstance(tick_period, int | float) and not isinstance(tick_period, bool)
    if tick_period is not None and not (is_number and tick_period > 0):  # type: ignore[operator]
        raise ConfigError(f"tick_period must be more than 0 seconds, or None; not {tick_period!r}")


def _check_root(root: object) -> None:
    if isinstance(root, Behaviour):
        return
    if isinstance(root, LeafFactory):
        name = getattr(root, "__name__", "leaf")
        raise ConfigError(
            f"root is {name}, which makes leaves and is none; call it: ReactiveRunner({name}(), ...)"
        )
    if inspect.isclass(root) and issubclass(root, Behaviour):
        raise ConfigError(
            f"root is the class {root.__name__}; make a node of it: ReactiveRunner({root.__name__}(...), ...)"
        )
    if inspect.isfunction(root):
        name = root.__name__
        raise ConfigError(
            f"root is the function {name}; decorate it with @node and call it: ReactiveRunner({name}(), ...)"
        )
    raise ConfigError(
        f"root is {_a(root)}; pass a node, such as Sequence('name', memory=True, children=[...])"
    )


def _check_state_manager(state_manager: object) -> None:
    if isinstance(state_manager, StateManager):
        return
    if inspect.isclass(state_manager) and issubclass(state_manager, BaseModel):
        name = state_manager.__name__
        raise ConfigError(f"state_manager is the schema {name}; wrap it: StateManager({name})")
    if isinstance(state_manager, BaseModel):
        name = type(state_manager).__name__
        raise ConfigError(
            f"state_manager is an instance of {name}; pass StateManager({name}), and the values to "
            "run(input_data=...)"
        )
    raise ConfigError(f"state_manager is {_a(state_manager)}; pass StateManager(YourSchema)")


def check_checkpointer(checkpointer: object) -> None:
    """Check what `run` is given to save with.

    Raises:
        ConfigError: It is none; the message has the call to write and never the value: it may be a DSN.
    """
    if checkpointer is None:
        return
    if inspect.isclass(checkpointer):
        name = checkpointer.__name__
        raise ConfigError(f"checkpointer is the class {name}; make one: checkpointer={name}(...)")
    methods = ("save_checkpoint", "get_checkpoint")
    missing = [name for name in methods if not callable(getattr(checkpointer, name, None))]
    if missing:
        raise ConfigError(
            f"checkpointer is {_a(checkpointer)}, which has no {' and no '.join(missing)}; pass one from "
            "jianmu.memory, such as checkpointer=FileCheckpointer('a folder') or SqliteCheckpointer('a file')"
        )


def check_composites(root: Behaviour, *, whole: bool) -> None:
    """Refuse composites whose arguments slipped, such as a list of children that landed in `memory`.

    Args:
        root: The tree.
        whole: Whether it is complete, so that a composite without children is a mistake, too.

    Raises:
        ConfigError: It names the composite and the right spelling.
    """
    seen: set[int] = set()
    stack: list[tuple[Any, str]] = [(root, "0")]
    while stack:
        node, path = stack.pop()
        if id(node) in seen:  # the index of the tree tells of that
            continue
        seen.add(id(node))
        _check_composite(node, path, whole)
        stack.extend((child, f"{path}/{i}") for i, child in enumerate(node.children))


def _check_composite(node: Any, path: str, whole: bool) -> None:
    if not isinstance(node, Sequence | Selector | Parallel):
        return
    head = f"{type(node).__name__} {node.name!r} (node {path})"
    if isinstance(node, Parallel):
        spelling = f"Parallel({node.name!r}, ParallelPolicy.SuccessOnAll(), [...])"
        policy: object = node.policy
        if not isinstance(policy, ParallelPolicy.Base):
            kind = _a(policy)
            raise ConfigError(f"the policy of {head} is {kind}, not a ParallelPolicy; write {spelling}")
    else:
        spelling = f"{type(node).__name__}({node.name!r}, memory=True, children=[...])"
        memory: object = node.memory
        if not isinstance(memory, bool):
            raise ConfigError(f"the memory of {head} is {_a(memory)}, not a bool; write {spelling}")
    if whole and not node.children:
        raise ConfigError(f"{head} has no children, so that it would do nothing; write {spelling}")


def _a(value: object) -> str:
    """Name the kind of `value`, never what it holds."""
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
