"""One process that runs a tree until it ends or is killed."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from jianmu import ReactiveRunner, StateManager
from jianmu.memory import FileCheckpointer, PostgresCheckpointer, SqliteCheckpointer

from .program import Log, random_tree

__all__ = ["PHASES", "Death", "World", "run_worker"]

PHASES = (
    "start-up",
    "restore",
    "between ticks and effects",
    "between effect and its save",
    "in a save of an answer",
    "in a save of a step",
    "after a save",
)
START, RESTORE, OPEN, EFFECT, JOURNAL, SAVE, SAVED = range(len(PHASES))


class Death:
    """When this process kills itself: at the n-th entry of a phase, some microseconds in; or never.

    The phase is kept in shared memory, so that the parent can read where a process died.
    """

    def __init__(self, page: mmap.mmap, phase: int | None = None, entry: int = 1, delay: float = 0.0) -> None:
        self._page, self._phase, self._entry, self._delay = page, phase, entry, delay
        self._lock = threading.Lock()

    def enter(self, phase: int) -> None:
        """Note that `phase` begins."""
        self._page[0] = phase
        if phase != self._phase:
            return
        with self._lock:
            self._entry -= 1
            if self._entry != 0:
                return
        if self._delay:
            threading.Thread(target=self._kill_soon, daemon=True).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def _kill_soon(self) -> None:
        end = time.perf_counter() + self._delay
        while time.perf_counter() < end:
            pass
        os.kill(os.getpid(), signal.SIGKILL)


class World:
    """The outside world as an append-only log.

    L life begins, E effect, A answer returned, S step saved, R step restored.
    """

    def __init__(self, path: Path, death: Death) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._death = death

    def note(self, kind: str, what: str) -> None:
        """Write one line at once."""
        os.write(self._file, f"{kind} {what}\n".encode())

    def happen(self, key: str) -> str:
        """Do one effect."""
        self._death.enter(OPEN)
        self.note("E", key)
        self._death.enter(EFFECT)
        return key

    def answered(self, key: str) -> None:
        """Note that an answer came back from `once`."""
        self.note("A", key)
        self._death.enter(OPEN)


class Watched:
    """Mixed into a real checkpointer: its phases are told."""

    def watch(self, world: World, death: Death) -> None:
        """Tell `world` and `death` from now on."""
        self._world, self._death = world, death

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Save, and say when."""
        self._death.enter(SAVE)
        super().save_checkpoint(  # type: ignore[misc]
            thread_id, step, state_dump, tree_state, runtime_metadata
        )
        self._world.note("S", str(step))
        self._death.enter(SAVED)

    def append_journal(self, thread_id: str, record: Any) -> None:
        """Append, and say when."""
        self._death.enter(JOURNAL)
        super().append_journal(thread_id, record)  # type: ignore[misc]

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Read, and say what was found."""
        self._death.enter(RESTORE)
        found: dict[str, Any] | None = super().get_checkpoint(thread_id, step=step)  # type: ignore[misc]
        if found is not None:
            self._world.note("R", str(found["step"]))
        return found


class WatchedPromptSaves(Watched):
    """The same, for a back end that also saves on the event loop."""

    def try_save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Save, and say when, if it takes no waiting."""
        self._death.enter(SAVE)
        saved: bool = super().try_save_checkpoint(  # type: ignore[misc]
            thread_id, step, state_dump, tree_state, runtime_metadata
        )
        if saved:
            self._world.note("S", str(step))
            self._death.enter(SAVED)
        return saved


class WatchedFile(Watched, FileCheckpointer):
    """Files."""


class WatchedSqlite(WatchedPromptSaves, SqliteCheckpointer):
    """One SQLite file."""


class WatchedPostgres(WatchedPromptSaves, PostgresCheckpointer):
    """A database."""


def _open(backend: str, folder: Path, durability: Any) -> WatchedFile | WatchedSqlite | WatchedPostgres:
    """Open a store: "file", "sqlite", or the connection string of a PostgreSQL database."""
    if backend.startswith("host="):
        return WatchedPostgres(backend)
    if backend == "sqlite":
        return WatchedSqlite(folder / "checkpoints.db", durability=durability)
    return WatchedFile(str(folder / "checkpoints"), durability=durability)


def run_worker(seed: int, folder: Path, death: Death, backend: str, durability: str) -> None:
    """Run the tree of `seed` in `folder` and write its result; call it in a process of its own."""
    death.enter(START)
    world = World(folder / "world.log", death)
    world.note("L", str(os.getpid()))
    checkpointer = _open(backend, folder, durability)
    checkpointer.watch(world, death)
    runner = ReactiveRunner(random_tree(seed, world), StateManager(Log))
    thread = f"crash in {folder}"  # one database may hold many of them
    result = asyncio.run(runner.run(checkpointer=checkpointer, thread_id=thread, checkpoint_interval=1))
    answer = {
        "status": result.status.name,
        "outcome": result.outcome,
        "committed": sorted(result.state.committed),
        "published": sorted(result.state.published),
    }
    (folder / "result.json").write_text(json.dumps(answer), "utf-8")


def choose_death(rng: Random, page: mmap.mmap, aimed: bool) -> Death:
    """Pick the instant of the next death; without aim the parent kills at a random time."""
    if not aimed:
        return Death(page)
    phase = rng.choice((START, RESTORE, EFFECT, EFFECT, JOURNAL, JOURNAL, SAVE, SAVE, SAVE, SAVED))
    entry = 1 if phase in (START, RESTORE) else rng.randint(1, 6)
    delay = rng.uniform(0, 0.0004) if phase in (JOURNAL, SAVE) or rng.random() < 0.3 else 0.0
    return Death(page, phase, entry, delay)
