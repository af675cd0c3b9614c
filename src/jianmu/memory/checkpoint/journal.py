"""Which records of a journal count."""

from __future__ import annotations

from collections.abc import Iterable

from jianmu.memory.checkpoint.base import JournalRecord

__all__ = ["live_records"]


def live_records(records: Iterable[JournalRecord]) -> list[JournalRecord]:
    """Return the last record of each (run_id, path, activation, key), in the order of writing."""
    live: dict[tuple[str, str, int, str], JournalRecord] = {}
    for record in records:
        key = (record["run_id"], record["path"], record["activation"], record["key"])
        live.pop(key, None)
        live[key] = record
    return list(live.values())
