"""Who wants to hear what a back end met and mended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from jianmu.memory.checkpoint.base import EventListener

__all__ = ["Listeners"]

_log = logging.getLogger("jianmu.checkpoint")


class Listeners:
    """The listeners of one back end; gives it the form of an `EventSource`."""

    def __init__(self) -> None:
        self._listeners: tuple[EventListener, ...] = ()

    def subscribe(self, listener: EventListener) -> Callable[[], None]:
        """Call `listener` for each event from now on; return what ends that."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return unsubscribe

    def tell(self, event: str, payload: dict[str, Any]) -> None:
        """Call every listener; one that fails is logged and does not stop the others."""
        for listener in self._listeners:
            try:
                listener(event, dict(payload))
            except Exception:  # noqa: BLE001 - a listener is foreign code, and the save must go on
                _log.exception("a listener for %s failed", event)
