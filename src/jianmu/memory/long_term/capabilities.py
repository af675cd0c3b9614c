"""What a long-term memory may offer beyond its three methods, as data that can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jianmu.errors import CapabilityError

__all__ = ["CAPABILITIES", "METHODS", "capabilities_of", "offered", "refuse_unknown", "require"]

CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "search.words": "retrieve finds a memory by a word it contains, in any script",
        "search.semantic": "retrieve finds a memory by its meaning, without a common word",
        "search.filters": "retrieve(filters=...) by metadata",
        "search.time": "retrieve(since=..., until=..., as_of=...)",
        "search.explain": "retrieve(explain=True) says why each hit ranks where it does",
        "search.deep": "retrieve(deep=True) searches the namespaces below as well",
        "write.keyless": "record without a key",
        "write.dedupe": "the same text in the same namespace is stored once",
        "write.batch": "record_many(items), all or nothing",
        "write.ttl": "record(ttl=seconds)",
        "read.get": "get(memory_id)",
        "read.list": "list(namespace)",
        "read.history": "history(memory_id)",
        "update": "update(memory_id, content)",
        "delete": "delete(memory_id)",
        "delete_all": "delete_all(namespace)",
        "erase": "erase(memory_id), erase_all(namespace) and scrub() leave no trace of the text in the files",
        "reindex": "reindex() with another embedder",
    }
)
"""Every capability and what it promises. A back end names its own in a `capabilities` attribute."""

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "write.batch": "record_many",
        "read.get": "get",
        "read.list": "list",
        "read.history": "history",
        "update": "update",
        "delete": "delete",
        "delete_all": "delete_all",
        "erase": "erase",
        "reindex": "reindex",
    }
)
"""The method behind each capability that is a method."""

_OF_ARGUMENT = {
    "filters": "search.filters",
    "since": "search.time",
    "until": "search.time",
    "as_of": "search.time",
    "explain": "search.explain",
    "deep": "search.deep",
    "ttl": "write.ttl",
}


def capabilities_of(memory: object) -> frozenset[str]:
    """Return what `memory` says it can do; nothing for a back end with only the three methods."""
    named: object = getattr(memory, "capabilities", frozenset())
    return frozenset(named) if isinstance(named, (frozenset, set, tuple, list)) else frozenset()


def require(memory: object, capability: str, remedy: str = "") -> None:
    """Raise CapabilityError, naming both, when `memory` lacks `capability`."""
    if capability not in capabilities_of(memory):
        raise CapabilityError(type(memory).__name__, capability, remedy)


def offered(memory: object, capability: str) -> Callable[..., Any]:
    """Return the method behind a capability: ``offered(memory, "read.history")(memory_id)``.

    Raises:
        CapabilityError: `memory` does not offer it.
        KeyError: The capability is no method.
    """
    method = getattr(memory, METHODS[capability], None)
    if not callable(method):
        raise CapabilityError(type(memory).__name__, capability)
    found: Callable[..., Any] = method
    return found


def refuse_unknown(memory: object, arguments: Mapping[str, object]) -> None:
    """Refuse extra keyword arguments of `record` or `retrieve` that ask for something.

    An argument that is None or False asks for nothing and passes.

    Raises:
        CapabilityError: The argument belongs to a capability that `memory` lacks.
        TypeError: No back end knows the argument.
    """
    for name, value in arguments.items():
        capability = _OF_ARGUMENT.get(name)
        if capability is None:
            raise TypeError(f"{type(memory).__name__} got an unexpected keyword argument {name!r}")
        if value is not None and value is not False:
            require(memory, capability)
