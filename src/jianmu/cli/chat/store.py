"""The one file that a chat keeps its threads and memories in."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from jianmu.memory import FileCheckpointer, MemoryService, SimpleStore

__all__ = ["ChatStore"]


class ChatStore:
    """Checkpoints and long-term memory in one SQLite file.

    Args:
        path: The file; made if missing.
        namespace: Whose memories these are, levels parted by ``/``.
    """

    def __init__(self, path: Path, namespace: str) -> None:
        self.path = path
        self.checkpointer = FileCheckpointer(path.with_suffix(".threads"))
        self.long_term = SimpleStore(path)
        self.namespace = tuple(part for part in namespace.split("/") if part)
        self.memory = MemoryService(self.long_term, self.namespace)

    def close(self) -> None:
        """Close the file."""
        self.checkpointer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
