"""The one file that a chat keeps its threads and memories in."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from jianmu.memory import MemoryService, SqliteCheckpointer, SqliteLongTermMemory

__all__ = ["ChatStore"]


class ChatStore:
    """Checkpoints and long-term memory in one SQLite file.

    Args:
        path: The file; made if missing.
        namespace: Whose memories these are, levels parted by ``/``.

    Raises:
        StorageError: The file cannot be opened, or is none of a chat's.
    """

    def __init__(self, path: Path, namespace: str) -> None:
        self.path = path
        self.checkpointer = SqliteCheckpointer(path)
        self.long_term = SqliteLongTermMemory(path)
        self.namespace = tuple(part for part in namespace.split("/") if part)
        self.memory = MemoryService(self.long_term, self.namespace)

    def close(self) -> None:
        """Close the file."""
        self.long_term.close()
        self.checkpointer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
