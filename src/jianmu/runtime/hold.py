"""The right to write one thread, kept while a run lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from jianmu.errors import LeaseLostError, StorageError, ThreadBusyError
from jianmu.memory.checkpoint.base import Lease, LeaseCapable
from jianmu.runtime.store import ThreadStore

__all__ = ["ThreadHold"]

_TTL = 30.0
"""Seconds that a dead holder keeps a thread where the system does not tell of its death."""


class ThreadHold:
    """A lease with its heartbeat, or a guard within the process for a back end that has no leases.

    The heartbeat has a thread of its own: a leaf that blocks the loop must not lose the run its thread.

    Args:
        store: The thread to hold.
        on_lost: Called from the heartbeat's thread with the `LeaseLostError`.
    """

    def __init__(self, store: ThreadStore, on_lost: Callable[[LeaseLostError], None]) -> None:
        self._store = store
        self._on_lost = on_lost
        self._lease: Lease | None = None
        self._guarded: dict[str, object] | None = None
        self._ended = threading.Event()

    async def take(self) -> None:
        """Hold the thread.

        Raises:
            ThreadBusyError: Another run holds it.
        """
        leases, checkpointer = self._store.leases, self._store.checkpointer
        if leases is not None:
            await self._store.writer.call(self._acquire, leases)
        elif checkpointer is not None:
            self._guard(checkpointer)

    def _acquire(self, leases: LeaseCapable) -> None:
        """Note the lease where it is taken: a caller who was cancelled meanwhile must still give it back."""
        self._lease = leases.acquire(self._store.thread_id, _TTL)
        threading.Thread(target=self._beat, name="jianmu-lease", daemon=True).start()

    def _guard(self, checkpointer: Any) -> None:
        held = getattr(checkpointer, "_jianmu_held", None)
        if held is None:
            held = {}
            try:
                checkpointer._jianmu_held = held
            except AttributeError:  # an object with slots cannot be marked, so it cannot be guarded
                return
        if held.setdefault(self._store.thread_id, self) is not self:
            raise ThreadBusyError(
                f"thread {self._store.thread_id!r} is held by another run in this process; wait for it to end"
            )
        self._guarded = held

    def _beat(self) -> None:
        assert self._lease is not None
        while not self._ended.wait(_TTL / 3):
            try:
                self._lease.renew()
            except LeaseLostError as error:
                self._on_lost(error)
                return
            except StorageError:
                continue  # the disk or server may be back before the lease ends; a save would tell

    async def release(self) -> None:
        """Give the thread back, also one that is being taken."""
        self._ended.set()
        if self._store.leases is not None:
            await self._store.writer.call(self._give_back)
        if self._guarded is not None:
            self._guarded.pop(self._store.thread_id, None)

    def _give_back(self) -> None:
        if self._lease is not None:
            self._lease.release()
