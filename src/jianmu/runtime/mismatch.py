"""A stored thread that does not fit the program which wants to go on with it."""

from __future__ import annotations

from jianmu.errors import StateError, TreeChangedError

__all__ = ["state_refused", "tree_changed"]

_OTHER_PROGRAM = "If another program uses the same thread_id in this store, give each a thread_id of its own"


def tree_changed(difference: str, thread_id: str, *, ended: bool) -> TreeChangedError:
    """Return the error to raise.

    Args:
        difference: The first one.
        thread_id: The thread.
        ended: Whether its run came to an end, so that no place in the tree would be lost.
    """
    go_on = "Build the same tree to go on"
    if ended:
        go_on = (
            "Its run had ended: build the same tree for the stored result, pass input_data= ({} will do) for "
            "a new round of the tree as it is now"
        )
    return TreeChangedError(
        f"the tree is not the one that thread {thread_id!r} was saved with: {difference}. {go_on}, or start "
        f"anew with another thread_id or restore_policy=RestorePolicy.NEVER. {_OTHER_PROGRAM}"
    )


def state_refused(error: StateError, thread_id: str, step: int) -> StateError:
    """Return `error` as of the same kind, with the thread, the step and one more cause."""
    return type(error)(f"thread {thread_id!r}, step {step}: {error}. {_OTHER_PROGRAM}")
