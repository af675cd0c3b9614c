"""The checkpointers that a reported fault is tried on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jianmu.memory import (
    FileCheckpointer,
    InMemoryCheckpointer,
    PostgresCheckpointer,
    SqliteCheckpointer,
)

Open = Callable[[], Any]
"""Returns the back end on the one store of this test; a new object each time, if the store is durable."""

DSN_FILE = "postgres.dsn"
"""Holds the connection string of the case's own schema."""

_opened: list[PostgresCheckpointer] = []


def openers(home: Path, clock: Callable[[], float] | None = None) -> dict[str, Open]:
    options: dict[str, Any] = {} if clock is None else {"clock": clock}
    memory = InMemoryCheckpointer(**options)

    def sqlite() -> Any:
        return SqliteCheckpointer(home / "checkpoints.db", **options)

    def postgres() -> Any:
        store = PostgresCheckpointer((home / DSN_FILE).read_text("utf-8"), **options)
        _opened.append(store)
        return store

    return {
        "file": lambda: FileCheckpointer(home / "files", durability="flush", **options),
        "memory": lambda: memory,
        "sqlite": sqlite,
        "postgres": postgres,
    }


def close_all() -> None:
    """Close what was opened on PostgreSQL."""
    while _opened:
        _opened.pop().close()


DURABLE = ["file", "sqlite", "postgres"]
ALL = ["memory", *DURABLE]
