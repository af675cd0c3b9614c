"""What a run is asked for and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from py_trees.common import Status

__all__ = ["Outcome", "Question", "RestorePolicy", "RunResult", "SuspensionMode"]

Outcome = Literal["completed", "suspended", "max_ticks", "cancelled"]


class RestorePolicy(Enum):
    """What `run` does about an earlier checkpoint of its thread."""

    AUTO = "auto"
    """Go on from it if there is one, else start fresh."""
    NEVER = "never"
    """Start fresh; later steps are saved behind the earlier ones."""
    REQUIRED = "required"
    """Go on from it, or raise `CheckpointNotFoundError`."""


class SuspensionMode(Enum):
    """What `run` does while a leaf waits for an answer."""

    WAIT = "wait"
    """Stay, until `ReactiveRunner.answer` is called."""
    YIELD = "yield"
    """Save and return with outcome ``"suspended"``; a later `run(answers=...)` goes on."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that a leaf waits on.

    Attributes:
        id: What `answer` and `answers=` call it; the same again after a restart.
        path: The leaf's index path.
        payload: What the leaf asked.
    """

    id: str
    path: str
    payload: Any


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    Attributes:
        status: The root's status as of the last step: SUCCESS or FAILURE once completed, else RUNNING (or
            INVALID when not one tick was made).
        outcome: ``"completed"`` (the root ended, be it with SUCCESS or FAILURE), ``"suspended"``,
            ``"max_ticks"`` or ``"cancelled"``.
        step: The last step, strictly increasing over the thread's life.
        ticks: How many ticks this call made.
        pending: The questions still open.
        state: The committed state, an instance of the schema.
        errors: The last exception of each leaf that failed by one in this round, by index path; those of an
            earlier call are `StoredLeafError` with the type and message that were saved, the latest 20.
    """

    status: Status
    outcome: Outcome
    step: int
    ticks: int
    pending: tuple[Question, ...]
    state: Any
    errors: Mapping[str, BaseException] = field(default_factory=dict)
