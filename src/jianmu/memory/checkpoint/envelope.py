"""The form of one saved step, shared by every back end.

An envelope is ``{"step": int, "state": dict, "tree": dict | None, "runtime_metadata": dict}``. A reader takes
any record that has "step" and "state" and keeps keys that it does not know, so later versions may add some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["extract_checkpoint_payload", "make_checkpoint_envelope"]


def make_checkpoint_envelope(
    step: int,
    state_dump: Mapping[str, Any],
    tree_state: Mapping[str, str] | None = None,
    runtime_metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return one envelope; the parts are referred to, not copied.

    Args:
        step: The tick number.
        state_dump: What `StateManager.dump_checkpoint` returned.
        tree_state: ``{node id: Status name}``, or None for a run without a tree.
        runtime_metadata: The runner's own data; None becomes ``{}``.
    """
    return {
        "step": step,
        "state": state_dump if isinstance(state_dump, dict) else dict(state_dump),
        "tree": None if tree_state is None else dict(tree_state),
        "runtime_metadata": dict(runtime_metadata or {}),
    }


def extract_checkpoint_payload(record: object) -> dict[str, Any] | None:
    """Return `record` as an envelope, or None if it is none.

    Valid is a mapping with an int "step" and a dict "state" at its top; anything else, such as the two under
    a nested "payload", is refused without an error. A missing "tree" is None, a missing "runtime_metadata"
    is ``{}``, and unknown keys stay.
    """
    if not isinstance(record, Mapping):
        return None
    step, state = record.get("step"), record.get("state")
    if not isinstance(step, int) or isinstance(step, bool) or not isinstance(state, dict):
        return None
    envelope = dict(record)
    envelope.setdefault("tree", None)
    if envelope.get("runtime_metadata") is None:
        envelope["runtime_metadata"] = {}
    return envelope
