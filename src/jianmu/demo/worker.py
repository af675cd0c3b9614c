"""The process that learns and is killed: it tells its parent on standard output, one JSON line an event.

Run by the demo as ``python -m jianmu.demo.worker FOLDER PACE [FILE]``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jianmu import ReactiveRunner, RuntimeEventBus, StateManager
from jianmu.demo.conversation import read_conversation
from jianmu.demo.place import LEARNING, Place
from jianmu.demo.tree import Learning, learning_tree
from jianmu.events import RuntimeEvent

__all__ = ["main"]

_TOLD = ("node.status", "checkpoint.saved", "checkpoint.restored", "demo.turn")


def main(arguments: list[str]) -> None:
    """Learn until the conversation ends, or this process does."""
    folder, pace, *file = arguments
    place = Place(Path(folder))
    turns = read_conversation(Path(file[0]) if file else None)
    _, memory_add = place.tools()
    bus = RuntimeEventBus()
    bus.subscribe(_tell, types=_TOLD)
    root = learning_tree(turns, memory_add, place.notebook(), float(pace))
    runner = ReactiveRunner(root, StateManager(Learning), event_bus=bus)
    checkpointer = place.checkpointer()
    _say("ready", {})
    try:
        result = runner.run_sync(checkpointer=checkpointer, thread_id=LEARNING, checkpoint_interval=1)
    finally:
        checkpointer.close()
    bus.drain()
    errors = [str(error) for error in result.errors.values()]
    _say(
        "ended",
        {"outcome": result.outcome, "status": result.status.name, "step": result.step, "errors": errors},
    )


def _tell(event: RuntimeEvent) -> None:
    keys = ("step", "path", "status", "turn")
    _say(event.type, {key: event.payload[key] for key in keys if key in event.payload})


def _say(type: str, payload: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"type": type, **payload}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
