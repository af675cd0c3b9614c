"""Checkpoints in a dict, for tests and sessions that end with their process."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from jianmu.codec.dump import StateDump, dump_json
from jianmu.errors import CheckpointExistsError, EncodeError, LeaseLostError, ThreadBusyError
from jianmu.memory.checkpoint.arguments import (
    check_count,
    check_limit,
    check_limits,
    check_step,
    check_thread_id,
    no_such_step,
    require_later_step,
)
from jianmu.memory.checkpoint.base import CheckpointInfo, JournalRecord
from jianmu.memory.checkpoint.envelope import make_checkpoint_envelope
from jianmu.memory.checkpoint.journal import live_records

__all__ = ["InMemoryCheckpointer", "InMemoryLease"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Saved:
    envelope: dict[str, Any]
    time: float

    @property
    def step(self) -> int:
        return int(self.envelope["step"])

    def info(self) -> CheckpointInfo:
        return CheckpointInfo(
            step=self.step, time=datetime.fromtimestamp(self.time, UTC), size=_size(self.envelope)
        )


@dataclass(slots=True)
class _Thread:
    saved: list[_Saved] = field(default_factory=list)
    journal: list[JournalRecord] = field(default_factory=list)

    def place(self, thread_id: str, step: int | None) -> int:
        """Return the index of `step` (None = newest)."""
        for index in range(len(self.saved) - 1, -1, -1):
            if step is None or self.saved[index].step == step:
                return index
        raise no_such_step(thread_id, step)


class InMemoryCheckpointer:
    """Keeps the last steps of each thread in this object; safe to share between threads.

    What goes in and what comes out is copied (`copy.deepcopy`), so nothing outside can change what is kept.
    Of a state manager's dump the text is kept, which never changes: such a save costs what changed.

    Args:
        history: How many steps to keep of each thread, the newest ones; None keeps all.
        clock: Seconds since the epoch, for `CheckpointInfo.time`.
    """

    def __init__(self, *, history: int | None = 100, clock: Callable[[], float] = time.time) -> None:
        if history is not None:
            check_count("history", history)
        self._history = history
        self._clock = clock
        self._threads: dict[str, _Thread] = {}
        self._leases: dict[str, InMemoryLease] = {}
        self._lock = threading.RLock()

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep a copy of one snapshot."""
        check_thread_id(thread_id)
        check_step(step)
        envelope = _copied(make_checkpoint_envelope(step, {}, tree_state, runtime_metadata))
        envelope["state"] = _kept(state_dump)
        with self._lock:
            self._check_fence(thread_id)
            saved = self._threads.setdefault(thread_id, _Thread()).saved
            require_later_step(thread_id, step, saved[-1].step if saved else None)
            saved.append(_Saved(envelope, self._clock()))
            if self._history is not None:
                del saved[: -self._history]

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Return a copy of the envelope at `step` (None = newest), or None."""
        check_thread_id(thread_id)
        with self._lock:
            saved = self._saved(thread_id)
            found = next((each for each in reversed(saved) if step is None or each.step == step), None)
        return None if found is None else _copied(found.envelope)

    def list_checkpoints(self, thread_id: str, *, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the heads of the steps kept, newest first; `size` is that of their JSON form."""
        check_thread_id(thread_id)
        check_limit(limit)
        with self._lock:
            newest_first = self._saved(thread_id)[::-1]
        return [each.info() for each in newest_first[:limit]]

    def list_threads(self) -> list[str]:
        """Return the ids of all threads, sorted."""
        with self._lock:
            return sorted(thread_id for thread_id, thread in self._threads.items() if thread.saved)

    def delete_thread(self, thread_id: str) -> bool:
        """Forget a thread and its journal; return whether there was one."""
        check_thread_id(thread_id)
        with self._lock:
            if thread_id in self._leases and thread_id in self._threads:
                self._leases[thread_id].lost = True
            thread = self._threads.pop(thread_id, None)
            return thread is not None and bool(thread.saved)

    def fork_thread(self, thread_id: str, new_thread_id: str, *, step: int | None = None) -> None:
        """Copy a thread up to and with `step` (None = newest) to a new id."""
        check_thread_id(thread_id)
        check_thread_id(new_thread_id)
        with self._lock:
            thread = self._threads.get(thread_id, _Thread())
            end = thread.place(thread_id, step) + 1
            if self._saved(new_thread_id):
                raise CheckpointExistsError(
                    f"thread {new_thread_id!r} exists; fork to another id, or delete it first"
                )
            self._threads[new_thread_id] = _Thread(thread.saved[:end])

    def truncate_thread(self, thread_id: str, *, step: int) -> int:
        """Forget every step saved after `step`, and the journal; return how many."""
        check_thread_id(thread_id)
        check_step(step)
        with self._lock:
            thread = self._threads.get(thread_id, _Thread())
            end = thread.place(thread_id, step) + 1
            self._check_fence(thread_id)
            dropped = len(thread.saved) - end
            del thread.saved[end:]
            thread.journal.clear()
            return dropped

    def prune(
        self, thread_id: str, *, keep_last: int | None = None, older_than: datetime | None = None
    ) -> int:
        """Forget old steps, never the newest; return how many."""
        check_thread_id(thread_id)
        check_limits(keep_last, older_than)
        limit = None if older_than is None else older_than.timestamp()
        with self._lock:
            saved = self._saved(thread_id)
            stays = len(saved) - (keep_last or 1)
            kept = [each for at, each in enumerate(saved) if at >= stays or not _is_before(each.time, limit)]
            dropped = len(saved) - len(kept)
            saved[:] = kept
            return dropped

    def append_journal(self, thread_id: str, record: JournalRecord) -> None:
        """Keep a copy of one answer until `trim_journal`."""
        check_thread_id(thread_id)
        with self._lock:
            self._check_fence(thread_id)
            self._threads.setdefault(thread_id, _Thread()).journal.append(_copied(record))

    def read_journal(self, thread_id: str) -> list[JournalRecord]:
        """Return copies of the live records in the order of writing."""
        check_thread_id(thread_id)
        with self._lock:
            thread = self._threads.get(thread_id)
            return _copied(live_records(thread.journal)) if thread else []

    def trim_journal(self, thread_id: str, keep: Sequence[JournalRecord]) -> None:
        """Replace the journal by `keep`."""
        check_thread_id(thread_id)
        with self._lock:
            self._check_fence(thread_id)
            thread = self._threads.get(thread_id)
            if thread is not None:
                thread.journal[:] = _copied(list(keep))

    def acquire(self, thread_id: str, ttl: float = 30.0) -> InMemoryLease:
        """Take the thread; only this object knows, so `ttl` is not used: a holder dies with the process.

        Raises:
            ThreadBusyError: It is taken.
        """
        check_thread_id(thread_id)
        with self._lock:
            if thread_id in self._leases:
                raise ThreadBusyError(f"thread {thread_id!r} is held by another run in this process")
            lease = InMemoryLease(thread_id, self._give_back)
            self._leases[thread_id] = lease
            return lease

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def __enter__(self) -> InMemoryCheckpointer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _saved(self, thread_id: str) -> list[_Saved]:
        thread = self._threads.get(thread_id)
        return thread.saved if thread else []

    def _check_fence(self, thread_id: str) -> None:
        if thread_id in self._leases:
            self._leases[thread_id].renew()

    def _give_back(self, lease: InMemoryLease) -> None:
        with self._lock:
            if self._leases.get(lease.thread_id) is lease:
                del self._leases[lease.thread_id]


class InMemoryLease:
    """The hold on one thread of an `InMemoryCheckpointer`.

    Attributes:
        thread_id: The thread.
        lost: Whether the thread was deleted under the holder.
    """

    def __init__(self, thread_id: str, give_back: Callable[[InMemoryLease], None]) -> None:
        self.thread_id = thread_id
        self.lost = False
        self._give_back = give_back

    def renew(self) -> None:
        """Check that the thread was not deleted meanwhile."""
        if self.lost:
            raise LeaseLostError(f"thread {self.thread_id!r} was deleted during this run; nothing was saved")

    def release(self) -> None:
        """Give the thread back; safe to call twice."""
        self._give_back(self)

    def __enter__(self) -> InMemoryLease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def _kept(state: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(state, StateDump):
        return _copied(dict(state))
    parts = state.parts
    return StateDump({key: parts[key] if key in parts else _copied(state[key]) for key in state})


def _size(envelope: dict[str, Any]) -> int:
    try:
        return len(dump_json(envelope))
    except (ValueError, RecursionError):  # a value that only memory can hold
        return len(repr(envelope))


def _copied(value: Value) -> Value:
    try:
        return copy.deepcopy(value)
    except (TypeError, RecursionError) as error:
        raise EncodeError(f"cannot be copied: {error}; keep plain data in the state") from error


def _is_before(moment: float, limit: float | None) -> bool:
    return limit is None or moment < limit
