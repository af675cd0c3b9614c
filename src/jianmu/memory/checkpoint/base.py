"""What a checkpointer is: two methods, and the capabilities that a back end may add.

A back end with only `CheckpointerProtocol` works. The runner looks for each capability with `isinstance`
and says `CapabilityError` when one that it was asked for is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypedDict, runtime_checkable

__all__ = [
    "CheckpointInfo",
    "CheckpointerProtocol",
    "Cipher",
    "Envelope",
    "EventListener",
    "EventSource",
    "HistoryCapable",
    "JournalCapable",
    "JournalRecord",
    "Lease",
    "LeaseCapable",
    "PromptSaveCapable",
]


class Envelope(TypedDict):
    """One saved step, as `make_checkpoint_envelope` builds it; unknown extra keys are kept."""

    step: int
    state: dict[str, Any]
    tree: dict[str, str] | None
    runtime_metadata: dict[str, Any]


@runtime_checkable
class CheckpointerProtocol(Protocol):
    """Keeps the newest snapshot of each thread. Synchronous; the runner calls it off the event loop."""

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> Any:
        """Keep one snapshot; it is durable when this returns.

        Args:
            thread_id: Any non-empty string.
            step: The tick number; strictly increasing over the life of a thread.
            state_dump: What `StateManager.dump_checkpoint` returned, or any dict of plain JSON data.
            tree_state: ``{node id: Status name}``.
            runtime_metadata: The runner's own data.

        Raises:
            CheckpointArgumentError: An empty thread id, or a step that is no non-negative int.
            CheckpointExistsError: The thread already has this step or a later one; nothing was written.
                A back end that is not `JournalCapable` takes its last step again, and the later one counts.
            EncodeError: A value that is not plain JSON data; the last good checkpoint stays.
            StorageError: The disk or the database refused; the last good checkpoint stays.
        """
        ...

    def get_checkpoint(self, thread_id: str) -> Any:
        """Return the newest envelope as a dict, or None."""
        ...


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """The head of one saved step.

    Attributes:
        step: The step.
        time: When it was saved, by the writer's clock, aware UTC; for people: order is the order of saving.
        size: Bytes stored for this step alone.
    """

    step: int
    time: datetime
    size: int


@runtime_checkable
class PromptSaveCapable(Protocol):
    """A back end that can tell when a save takes no waiting, so that it need not leave the event loop."""

    def try_save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Do `save_checkpoint` if it will not wait for a disk, a lock or another writer.

        Returns:
            Whether it is done; if not, nothing has happened and `save_checkpoint` is the way.
        """
        ...


@runtime_checkable
class HistoryCapable(Protocol):
    """Every back end but Null keeps earlier steps too."""

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Return the envelope at `step` (None = newest), or None if there is no such step.

        Raises:
            CheckpointCorruptError: The record was saved and fails its checksum; it names the step before.
            CheckpointFormatError: The record is of a newer format.
            CipherError: The key is wrong, or the record was altered or never sealed.
        """
        ...

    def list_checkpoints(self, thread_id: str, *, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the heads of the saved steps, newest first by order of saving."""
        ...

    def list_threads(self) -> list[str]:
        """Return the ids of all threads, sorted."""
        ...

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread with its journal; return whether there was one.

        A holder of its lease may be at work: its next save raises `LeaseLostError` and does not bring the
        thread back. An id used again after its lease was released starts empty.
        """
        ...

    def fork_thread(self, thread_id: str, new_thread_id: str, *, step: int | None = None) -> None:
        """Copy a thread up to and with `step` (None = newest) to a new id; the journal is not copied.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            CheckpointExistsError: The new id is taken.
        """
        ...

    def truncate_thread(self, thread_id: str, *, step: int) -> int:
        """Drop every step saved after `step` and the journal; return how many were dropped.

        Raises:
            CheckpointNotFoundError: No such thread or step.
        """
        ...

    def prune(
        self, thread_id: str, *, keep_last: int | None = None, older_than: datetime | None = None
    ) -> int:
        """Drop old steps, never the newest one; return how many were dropped.

        With both arguments a step goes only if both say so.

        Args:
            thread_id: The thread; an unknown one has nothing to drop.
            keep_last: Keep at least so many of the newest steps (1 or more).
            older_than: An aware datetime; a step saved at or after it stays.

        Raises:
            CheckpointArgumentError: No limit was given, or one is out of range.
        """
        ...

    def close(self) -> None:
        """Free files and connections; safe to call twice."""
        ...


class JournalRecord(TypedDict):
    """The answer of one `ctx.once` (or the answer to one question), kept between two checkpoints.

    Keyed by all four of run_id, path, activation and key; a later record with the same four wins.
    `value` is plain JSON data (already encoded).
    """

    run_id: str
    path: str
    activation: int
    key: str
    value: Any


@runtime_checkable
class JournalCapable(Protocol):
    """Keeps the answers of `once` in mid-tick. A back end without it gets the last envelope again instead."""

    def append_journal(self, thread_id: str, record: JournalRecord) -> None:
        """Keep one record; durable when this returns."""
        ...

    def read_journal(self, thread_id: str) -> list[JournalRecord]:
        """Return the live records in the order of writing."""
        ...

    def trim_journal(self, thread_id: str, keep: Sequence[JournalRecord]) -> None:
        """Replace the journal by `keep`; called after the checkpoint that makes the others stale is saved."""
        ...


class Lease(Protocol):
    """The right of one runner to write one thread."""

    thread_id: str

    @property
    def lost(self) -> bool:
        """Whether the lease is known to be lost."""
        ...

    def renew(self) -> None:
        """Extend the lease by its ttl.

        Raises:
            LeaseLostError: Somebody else holds the thread by now.
        """
        ...

    def release(self) -> None:
        """Give the thread back; safe to call twice."""
        ...


@runtime_checkable
class LeaseCapable(Protocol):
    """One writer per thread.

    While this object holds a lease, its own `save_checkpoint` and `append_journal` on that thread check the
    fence inside the writing statement and raise `LeaseLostError` when a successor took over. Without a
    lease they are refused with `ThreadBusyError` while another holder lives, and allowed otherwise.
    """

    def acquire(self, thread_id: str, ttl: float = 30.0) -> Lease:
        """Take the thread for `ttl` seconds, renewable.

        Raises:
            ThreadBusyError: Another live holder has it.
        """
        ...


EventListener = Callable[[str, dict[str, Any]], None]
"""Called with an event's type and payload, on whichever thread noticed it; must be quick."""


@runtime_checkable
class EventSource(Protocol):
    """Tells of what a back end met and mended, such as ``checkpoint.damaged``.

    The payload of ``checkpoint.damaged`` is ``{"thread_id", "reason", "step"}``: bytes that were never
    acknowledged were passed over, and `step` (or None) is the newest whole step.
    """

    def subscribe(self, listener: EventListener) -> Callable[[], None]:
        """Call `listener` for each event from now on; return what ends that."""
        ...


class Cipher(Protocol):
    """Seals what a back end stores (`jianmu.memory.checkpoint.cipher.AesGcmCipher` is the shipped one)."""

    def seal(self, data: bytes, *, aad: bytes) -> bytes:
        """Return `data` encrypted, bound to `aad`."""
        ...

    def open(self, data: bytes, *, aad: bytes) -> bytes:
        """Return what was sealed.

        Raises:
            CipherError: The key is wrong, or `data` or `aad` is not what was sealed.
        """
        ...
