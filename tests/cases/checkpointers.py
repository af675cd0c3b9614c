"""The checkpointers that a reported fault is tried on."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from jianmu.memory import FileCheckpointer, InMemoryCheckpointer

Open = Callable[[], Any]
"""Returns the back end on the one store of this test; a new object each time, if the store is durable."""


def openers(home: Path, clock: Callable[[], float] | None = None) -> dict[str, Open]:
    options: dict[str, Any] = {} if clock is None else {"clock": clock}
    memory = InMemoryCheckpointer(**options)

    def sqlite() -> Any:
        from jianmu.memory import SqliteCheckpointer

        return SqliteCheckpointer(home / "checkpoints.db", **options)

    return {
        "file": lambda: FileCheckpointer(home / "files", durability="flush", **options),
        "memory": lambda: memory,
        "sqlite": sqlite,
    }


DURABLE = [
    "file",
    pytest.param(
        "sqlite",
        marks=pytest.mark.skipif(
            find_spec("jianmu.memory.checkpoint.sqlite") is None, reason="SqliteCheckpointer is not built yet"
        ),
    ),
]
ALL = ["memory", *DURABLE]
