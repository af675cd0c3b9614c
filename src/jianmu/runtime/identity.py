"""What tells one run, and one timeline of it, from every other."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["RunIdentity"]


def _draw() -> str:
    return secrets.token_hex(8)


class RunIdentity:
    """A run id, drawn at a fresh start, and an epoch that grows with each new round and truncation.

    Activation numbers go on over both, so path and activation alone would name two things; with these they
    name one. A fork draws a new id: its effects are other effects.

    Args:
        draw: Where run ids come from.

    Attributes:
        saved: Whether a checkpoint with the present id and epoch was saved; no leaf starts before.
    """

    def __init__(self, draw: Callable[[], str] = _draw) -> None:
        self._draw = draw
        self._run_id = ""
        self._epoch = 0
        self._least_epoch = 0
        self._is_lost = False
        self.saved = False

    def start_fresh(self) -> None:
        """Draw a new run id."""
        self._run_id, self._epoch, self.saved = self._draw(), 0, False

    def start_epoch(self) -> None:
        """Tell what follows from what was done before under the same activations."""
        self._epoch, self.saved = max(self._epoch + 1, self._least_epoch), False

    def leave_behind(self, cut: Mapping[str, Any] | None) -> None:
        """Note what `dump` gave for steps that are cut off: their epoch is not to be used again.

        Args:
            cut: The plain data; None if it cannot be read, so that only a new id is surely another.
        """
        self._is_lost = cut is None
        self._least_epoch = int((cut or {}).get("epoch", 0)) + 1

    def dump(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"run_id": self._run_id, "epoch": self._epoch}

    def load(self, saved: Mapping[str, Any], *, fork: bool) -> bool:
        """Take up what `dump` gave.

        Args:
            saved: The plain data.
            fork: Whether it was saved by another thread.

        Returns:
            Whether it is the same timeline, so that its journal counts.
        """
        self._run_id = str(saved.get("run_id") or self._draw())
        self._epoch = int(saved.get("epoch", 0))
        self.saved = "run_id" in saved
        if fork or self._is_lost:
            self._run_id = self._draw()
        if fork or self._least_epoch:
            self.start_epoch()
            return False
        return True

    @property
    def timeline(self) -> str:
        """Names this id and epoch in the journal."""
        return f"{self._run_id}.{self._epoch}"

    @property
    def question_prefix(self) -> str:
        """What the ids of this timeline's questions begin with."""
        return f"{self._run_id[:8]}.{self._epoch}"

    def idempotency_key(self, path: str, activation: int) -> str:
        """Return the key of one activation; `once` adds its own."""
        return f"{self._run_id}/{self._epoch}/{path}/{activation}"
