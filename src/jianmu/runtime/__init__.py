"""The reactive runner and its leaves; the only room that imports py_trees."""

from __future__ import annotations

from py_trees.common import ParallelPolicy, Status
from py_trees.composites import Parallel, Selector, Sequence
from py_trees.decorators import Repeat, Retry

from jianmu.runtime.ctx import LeafContext
from jianmu.runtime.leaf import Ask, AsyncNode, node
from jianmu.runtime.result import Question, RestorePolicy, RunResult, SuspensionMode
from jianmu.runtime.runner import ReactiveRunner

__all__ = [
    "Ask",
    "AsyncNode",
    "LeafContext",
    "Parallel",
    "ParallelPolicy",
    "Question",
    "ReactiveRunner",
    "Repeat",
    "RestorePolicy",
    "Retry",
    "RunResult",
    "Selector",
    "Sequence",
    "Status",
    "SuspensionMode",
    "node",
]
