"""No persistence, for one-off scripts and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["NullCheckpointer"]


class NullCheckpointer:
    """Keeps nothing: every save is forgotten and every thread is new."""

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Do nothing."""

    def get_checkpoint(self, thread_id: str) -> None:
        """Return None."""
