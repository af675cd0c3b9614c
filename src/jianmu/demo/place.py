"""Where a demo keeps its files, and what is kept there; parent and children use the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jianmu.demo.effects import EffectFile
from jianmu.memory import FileCheckpointer, SimpleStore, create_memory_tools
from jianmu.tools import Tool

__all__ = ["ANSWERING", "LEARNING", "NAMESPACE", "Place"]

LEARNING = "learning"
"""The thread that is killed."""
ANSWERING = "answering"
"""The new thread that answers."""
NAMESPACE = ("demo", "user")
"""Where the demo's memories are."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with checkpoints, memory and the notebook."""

    folder: Path

    def checkpointer(self) -> FileCheckpointer:
        """Open the checkpoints."""
        return FileCheckpointer(self.folder / "checkpoints")

    def store(self) -> SimpleStore:
        """Open the long-term memory."""
        return SimpleStore(self.folder / "memory.json")

    def tools(self) -> tuple[Tool, Tool]:
        """Return `memory_search` and `memory_add` for the demo's user."""
        search, add = create_memory_tools(NAMESPACE, self.store())
        return search, add

    def notebook(self) -> EffectFile:
        """Open the file of effects."""
        return EffectFile(self.folder / "notebook.jsonl")

    def saved(self) -> dict[str, Any] | None:
        """Return the newest checkpoint of the learning thread."""
        checkpointer = self.checkpointer()
        try:
            saved: dict[str, Any] | None = checkpointer.get_checkpoint(LEARNING)
            return saved
        finally:
            checkpointer.close()
