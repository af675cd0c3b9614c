"""What a long-term memory is: three methods over text and namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

from jianmu.messages import Message

__all__ = [
    "LongTermMemoryInput",
    "LongTermMemoryProtocol",
    "LongTermMemoryRecordResult",
    "LongTermMemoryRetrieved",
    "Namespace",
    "RecordStatus",
    "RetrievedMemory",
]

LongTermMemoryInput = str | Message | Sequence[Message]
"""What can be recorded; a back end turns it into text."""

Namespace = tuple[str, ...]
"""Levels of isolation, outermost first, e.g. ``("agent", "thread")``; None in a call means ``()``."""

RecordStatus = Literal["stored", "updated", "duplicate", "queued", "nothing"]


class LongTermMemoryRecordResult(TypedDict):
    """What became of a record.

    `id` is the first of `ids`, or None when nothing (or nothing yet) has an id.
    """

    id: str | None
    ids: list[str]
    key: str | None
    status: RecordStatus


class RetrievedMemory(TypedDict):
    """One hit; a higher `score` is better, None where the back end gives none."""

    id: str | None
    content: str
    metadata: dict[str, Any]
    score: float | None


LongTermMemoryRetrieved = list[RetrievedMemory]
"""Hits, best first."""


@runtime_checkable
class LongTermMemoryProtocol(Protocol):
    """Facts that outlive the conversation. `delete(memory_id, *, namespace=None) -> bool` is optional."""

    def record(
        self, inputs: LongTermMemoryInput, *, namespace: Namespace | None = None, **kwargs: Any
    ) -> LongTermMemoryRecordResult:
        """Keep `inputs` under `namespace`; durable when this returns, unless the status is "queued"."""
        ...

    def retrieve(
        self, query: str, *, limit: int = 5, namespace: Namespace | None = None, **kwargs: Any
    ) -> LongTermMemoryRetrieved:
        """Return at most `limit` memories of exactly this namespace, best first."""
        ...

    def format_retrieved(self, retrieved: LongTermMemoryRetrieved, **kwargs: Any) -> str:
        """Render hits as text for a model."""
        ...
