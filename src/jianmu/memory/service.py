"""One place of a long-term memory: a back end bound to a namespace."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from jianmu.memory.long_term.base import (
    LongTermMemoryInput,
    LongTermMemoryProtocol,
    LongTermMemoryRecordResult,
    LongTermMemoryRetrieved,
    Namespace,
)
from jianmu.memory.long_term.capabilities import capabilities_of, offered
from jianmu.memory.long_term.inputs import namespace_tuple

if TYPE_CHECKING:
    from jianmu.tools import Tool

__all__ = ["EventSink", "MemoryService"]

_log = logging.getLogger("jianmu.memory")


class EventSink(Protocol):
    """Where events go: a `RuntimeEventBus`, or anything else that can `emit`."""

    def emit(self, type: str, payload: Mapping[str, Any] | None = None) -> None:
        """Take one event."""
        ...


class MemoryService:
    """Add, search and delete in one namespace of any long-term memory.

    Events: ``memory.added {namespace, id, key, status}``, ``memory.searched {namespace, limit, hits}``,
    ``memory.deleted {namespace, id, found}`` and, when a call failed, ``memory.failed {operation, namespace,
    backend, error, message}``; the exception is raised on. No event holds a memory's text.

    Args:
        long_term_memory: The back end, kept as `memory`.
        namespace: Where everything is stored and searched.
        event_bus: Who is told; None = nobody (failures are logged all the same).
    """

    def __init__(
        self,
        long_term_memory: LongTermMemoryProtocol,
        namespace: Sequence[str] | None = (),
        event_bus: EventSink | None = None,
    ) -> None:
        self.memory = long_term_memory
        self.namespace: Namespace = namespace_tuple(namespace)
        self.event_bus = event_bus

    def add(
        self,
        inputs: LongTermMemoryInput,
        *,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> LongTermMemoryRecordResult:
        """Record `inputs`; `key`, `metadata` and the rest go to the back end's `record` when given."""
        given = {"key": key, "metadata": metadata}
        with self._told("add"):
            result = self.memory.record(
                inputs,
                namespace=self.namespace,
                **{name: value for name, value in given.items() if value is not None},
                **kwargs,
            )
        self._emit("memory.added", {name: result.get(name) for name in ("id", "key", "status")})
        return result

    def search(self, query: str, *, limit: int = 5, **kwargs: Any) -> LongTermMemoryRetrieved:
        """Return at most `limit` memories, best first; the rest goes to the back end's `retrieve`."""
        with self._told("search"):
            retrieved = self.memory.retrieve(query, limit=limit, namespace=self.namespace, **kwargs)
        self._emit("memory.searched", {"limit": limit, "hits": len(retrieved)})
        return retrieved

    def format_retrieved(self, retrieved: LongTermMemoryRetrieved, **kwargs: Any) -> str:
        """Render hits as text for a model."""
        with self._told("format"):
            return self.memory.format_retrieved(retrieved, **kwargs)

    def delete(self, memory_id: str) -> bool:
        """Delete one memory of this namespace; False when there is none with this id.

        Raises:
            CapabilityError: The back end cannot delete.
        """
        delete = offered(self.memory, "delete")
        with self._told("delete"):
            found = bool(delete(memory_id, namespace=self.namespace))
        self._emit("memory.deleted", {"id": memory_id, "found": found})
        return found

    async def aadd(
        self,
        inputs: LongTermMemoryInput,
        *,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> LongTermMemoryRecordResult:
        """Do as `add` does, without blocking the event loop."""
        return await asyncio.to_thread(self.add, inputs, key=key, metadata=metadata, **kwargs)

    async def asearch(self, query: str, *, limit: int = 5, **kwargs: Any) -> LongTermMemoryRetrieved:
        """Do as `search` does, without blocking the event loop."""
        return await asyncio.to_thread(functools.partial(self.search, query, limit=limit, **kwargs))

    async def adelete(self, memory_id: str) -> bool:
        """Do as `delete` does, without blocking the event loop."""
        return await asyncio.to_thread(self.delete, memory_id)

    def as_tools(self) -> list[Tool]:
        """Return ``[MemorySearchTool, MemoryAddTool]``, bound to this namespace."""
        from jianmu.memory.tools import MemoryAddTool, MemorySearchTool  # the two modules know each other

        return [MemorySearchTool(memory=self), MemoryAddTool(memory=self)]

    def below(self, segments: Sequence[str] | None) -> MemoryService:
        """Return the service of a namespace further down; no segments = this one."""
        if not segments:
            return self
        return MemoryService(self.memory, (*self.namespace, *namespace_tuple(segments)), self.event_bus)

    def can(self, capability: str) -> bool:
        """Whether the back end offers a capability, e.g. ``"search.deep"``."""
        return capability in capabilities_of(self.memory)

    @contextmanager
    def _told(self, operation: str) -> Iterator[None]:
        """Tell the operator of a failure, then let it go on to the caller."""
        try:
            yield
        except Exception as error:  # told whatever it is, and raised again
            backend, name = type(self.memory).__name__, type(error).__name__
            _log.warning("memory %s failed in %s: %s", operation, backend, name)
            failure = {"operation": operation, "backend": backend, "error": name, "message": str(error)}
            self._emit("memory.failed", failure)
            raise

    def _emit(self, type: str, payload: dict[str, Any]) -> None:
        if self.event_bus is not None:
            self.event_bus.emit(type, {"namespace": list(self.namespace), **payload})
