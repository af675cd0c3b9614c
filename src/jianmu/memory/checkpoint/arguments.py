"""What every back end refuses in the same words."""

from __future__ import annotations

from datetime import datetime

from jianmu.errors import CheckpointArgumentError, CheckpointExistsError, CheckpointNotFoundError

__all__ = [
    "check_count",
    "check_limit",
    "check_limits",
    "check_step",
    "check_thread_id",
    "no_such_step",
    "require_later_step",
]

_LARGEST_STEP = 2**63 - 2  # what every database holds, and one more tells "the newest"


def check_thread_id(thread_id: str) -> None:
    """Refuse what is no non-empty string.

    Raises:
        CheckpointArgumentError: With the kind of what was given.
    """
    if not isinstance(thread_id, str):
        raise CheckpointArgumentError(f"thread_id must be a str, not {type(thread_id).__name__}")
    if not thread_id:
        raise CheckpointArgumentError("thread_id is empty; give each thread a name of its own")


def check_step(step: int) -> None:
    """Refuse what is no non-negative int below 2**63 - 1.

    Raises:
        CheckpointArgumentError: With the kind or value of what was given.
    """
    if type(step) is not int:
        raise CheckpointArgumentError(f"step must be an int, not {type(step).__name__}")
    if step < 0:
        raise CheckpointArgumentError(f"step must be 0 or more, not {step}")
    if step > _LARGEST_STEP:
        raise CheckpointArgumentError("step must be less than 2**63 - 1")


def require_later_step(thread_id: str, step: int, newest: int | None) -> None:
    """Refuse to save `step` on a thread that has come to `newest`.

    Raises:
        CheckpointExistsError: `step` is not after `newest`.
    """
    if newest is not None and step <= newest:
        raise CheckpointExistsError(
            f"thread {thread_id!r} is already at step {newest}, so step {step} would rewrite it; go on from "
            f"step {newest + 1}, or call truncate_thread() or fork_thread() first"
        )


def check_limits(keep_last: int | None, older_than: datetime | None) -> None:
    """Refuse the arguments of `prune` that can mean nothing.

    Raises:
        CheckpointArgumentError: Neither was given, `keep_last` is under 1, or `older_than` has no zone.
    """
    if keep_last is None and older_than is None:
        raise CheckpointArgumentError("prune() needs keep_last=, older_than= or both")
    if keep_last is not None:
        check_count("keep_last", keep_last)
    if older_than is not None and older_than.tzinfo is None:
        raise CheckpointArgumentError("older_than has no time zone; use datetime.now(timezone.utc) - age")


def check_count(name: str, count: int) -> None:
    """Refuse what is no positive int.

    Raises:
        CheckpointArgumentError: With the argument's `name` and what was given.
    """
    if type(count) is not int or count < 1:
        raise CheckpointArgumentError(f"{name} must be an int of 1 or more, not {count!r}")


def check_limit(limit: int | None) -> None:
    """Refuse a `limit` that is neither None nor an int of 0 or more.

    Raises:
        CheckpointArgumentError: With what was given.
    """
    if limit is not None and (type(limit) is not int or limit < 0):
        raise CheckpointArgumentError(f"limit must be None or an int of 0 or more, not {limit!r}")


def no_such_step(thread_id: str, step: int | None) -> CheckpointNotFoundError:
    """Return the error for a thread or step that is not there."""
    what = "no checkpoint" if step is None else f"no step {step}"
    return CheckpointNotFoundError(f"thread {thread_id!r} has {what}; list_checkpoints() names what there is")
