"""A namespace as mem0's flat `user_id`, and back-end-neutral metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from jianmu.errors import MemoryInputError
from jianmu.memory.long_term.base import Namespace
from jianmu.memory.long_term.inputs import namespace_tuple

__all__ = ["drop_names", "pack_metadata", "unpack_metadata", "user_id_of"]

_UNSAFE = re.compile(r"[/%*\s\x00-\x1f\x7f\ud800-\udfff]")

_MEM0_NAMES = """
    user_id agent_id run_id actor_id app_id role data hash id memory memory_id created_at updated_at
    expiration_date attributed_to text_lemmatized jianmu_json
"""
RESERVED = frozenset(_MEM0_NAMES.split())
"""Metadata names that mem0 gives a meaning of its own: they would move or lose the memory."""

_PACKED = "jianmu_json"


def user_id_of(namespace: Namespace | None) -> str:
    """Join the parts of a namespace with ``/``: ``("agent", "thread")`` is ``"agent/thread"``.

    ``/``, ``%``, ``*``, white space and control characters inside a part are percent-encoded (UTF-8), so
    that no two namespaces meet and mem0's wildcard ``*`` cannot be spelled. The root namespace ``()`` is
    ``"/"``, which no other namespace gives.

    Raises:
        TypeError, ValueError: See `namespace_tuple`.
    """
    return "/".join(_encode(part) for part in namespace_tuple(namespace)) or "/"


def _encode(part: str) -> str:
    return _UNSAFE.sub(lambda found: quote(found.group(), safe="", errors="surrogatepass"), part)


def pack_metadata(metadata: Mapping[str, Any] | None, key: str | None) -> dict[str, Any]:
    """Return metadata that every vector store of mem0 keeps: scalars as they are, the rest as one JSON text.

    Raises:
        MemoryInputError: A reserved name, or a value that is not plain JSON data.
    """
    given = dict(metadata or {})
    taken = sorted(RESERVED.intersection(given) | ({"key"} & given.keys() if key is not None else set()))
    if taken:
        raise MemoryInputError(f"metadata names {taken} are reserved by mem0; choose others")
    packed = {name: value for name, value in given.items() if isinstance(value, str | int | float | bool)}
    nested = {name: value for name, value in given.items() if name not in packed}
    if nested:
        packed[_PACKED] = _to_json({"values": nested})
    if key is not None:
        packed["key"] = key
    return packed


def drop_names(packed: Mapping[str, Any], stale: Iterable[str]) -> dict[str, Any]:
    """Return `packed` with a note that names left over from an earlier version no longer count.

    Some versions and stores merge new metadata into the old instead of replacing it.
    """
    notes = json.loads(packed.get(_PACKED, "{}"))
    return {**packed, _PACKED: _to_json({**notes, "dropped": sorted(stale)})}


def _to_json(value: dict[str, Any]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MemoryInputError(f"metadata is not plain JSON data: {error}") from error


def unpack_metadata(metadata: Any) -> dict[str, Any]:
    """Undo `pack_metadata`; the caller's `key` stays under its name."""
    plain = dict(metadata) if isinstance(metadata, Mapping) else {}
    notes = json.loads(plain.pop(_PACKED, "{}"))
    dropped = set(notes.get("dropped", ()))
    kept = {name: value for name, value in plain.items() if name not in dropped}
    return {**kept, **notes.get("values", {})}
