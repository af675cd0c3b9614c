"""What a tool may know of the run around it, without a parameter for it."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["current_idempotency_key"]

current_idempotency_key: ContextVar[str | None] = ContextVar("jianmu_idempotency_key", default=None)
"""The key of the effect that is under way, or None outside a run.

The runtime sets it around a leaf's code to the leaf's own key and around each `ctx.once` call to that
call's key. It is the same again when the effect is repeated after a crash. All that a leaf does outside
`once` shares the leaf's key: derive from the key *and* the arguments.
"""
