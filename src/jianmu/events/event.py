"""One thing that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["RuntimeEvent"]


@dataclass(frozen=True, slots=True)
class RuntimeEvent:
    """One thing that happened in a run or in one of its parts.

    Attributes:
        type: A dotted name, e.g. ``"checkpoint.saved"``.
        payload: Its details; the keys belong to the type.
        time: When it was emitted, aware UTC.
    """

    type: str
    payload: Mapping[str, Any]
    time: datetime
