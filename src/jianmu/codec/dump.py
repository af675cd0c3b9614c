"""A state dump, and the two questions that a back end asks of any dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from jianmu.codec.delta import Change, diff

__all__ = ["StateDump", "changes_between", "dump_json"]


class StateDump(dict[str, Any]):
    """What `StateManager.dump_checkpoint` returns: plain JSON data, frozen and shared between dumps."""


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the changes from `old` to `new`; costs what changed when both are dumps of one manager."""
    return diff(old, new)


def dump_json(dump: Mapping[str, Any]) -> bytes:
    """Return `dump` as compact UTF-8 JSON; costs what is new when it is a dump of a manager."""
    return to_json(dump)
