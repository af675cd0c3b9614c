"""What happened in a run, for whoever listens."""

from __future__ import annotations

from jianmu.events.bus import RuntimeEventBus
from jianmu.events.event import RuntimeEvent

__all__ = ["RuntimeEvent", "RuntimeEventBus"]
