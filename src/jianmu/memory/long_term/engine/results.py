"""What callers get: hits and entries of a history, made of rows."""

from __future__ import annotations

import json
from typing import Any

from jianmu.memory.long_term.base import RetrievedMemory
from jianmu.memory.long_term.engine.items import Row
from jianmu.memory.long_term.engine.times import from_seconds

__all__ = ["history_entry", "hit", "scored_hit"]


def hit(row: Row) -> RetrievedMemory:
    """An item that was asked for by name; no score."""
    return {"id": row.uid, "content": row.content, "metadata": _metadata(row), "score": None}


def scored_hit(row: Row, score: float, explain: dict[str, Any] | None) -> RetrievedMemory:
    """An item that was found; with its reasons when there are any."""
    found: RetrievedMemory = {
        "id": row.uid,
        "content": row.content,
        "metadata": _metadata(row),
        "score": score,
    }
    if explain is not None:
        found["explain"] = explain  # type: ignore[typeddict-unknown-key] # asked for; the protocol's keys stay
    return found


def history_entry(content: str, metadata: str, start: float, end: float | None) -> dict[str, Any]:
    """One text of an item and when it held."""
    return {
        "content": content,
        "metadata": json.loads(metadata),
        "valid_from": from_seconds(start),
        "valid_to": None if end is None else from_seconds(end),
    }


def _metadata(row: Row) -> dict[str, Any]:
    """The caller's metadata and, unless it has such fields itself, what else the caller said."""
    metadata: dict[str, Any] = json.loads(row.metadata)
    if row.dated:
        metadata.setdefault("time", from_seconds(row.time).isoformat())
    if row.speaker is not None:
        metadata.setdefault("speaker", row.speaker)
    if row.session is not None:
        metadata.setdefault("session", row.session)
    return metadata
