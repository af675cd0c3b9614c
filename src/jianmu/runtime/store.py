"""One thread of one checkpointer, as a run uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jianmu.errors import CapabilityError, ConfigError
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    EventSource,
    HistoryCapable,
    JournalCapable,
    JournalRecord,
    LeaseCapable,
    PromptSaveCapable,
)
from jianmu.memory.checkpoint.envelope import extract_checkpoint_payload, make_checkpoint_envelope
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.memory.checkpoint.null import NullCheckpointer
from jianmu.runtime.writer import SerialWriter

__all__ = ["RUNNER_KEY", "ThreadStore"]

RUNNER_KEY = "runner"
"""The key of `runtime_metadata` under which the runner keeps its own data, beside the state manager's."""


class ThreadStore:
    """Reads and writes one thread.

    Args:
        checkpointer: The back end, or None for a run that keeps nothing.
        thread_id: The thread.
    """

    def __init__(self, checkpointer: CheckpointerProtocol | None, thread_id: str) -> None:
        keeps_nothing = type(checkpointer) is NullCheckpointer
        self.checkpointer: CheckpointerProtocol | None = None if keeps_nothing else checkpointer
        self.thread_id = thread_id
        self.writer = SerialWriter(inline=isinstance(checkpointer, InMemoryCheckpointer))
        # As objects: the capabilities are no subclasses of the protocol with the two methods.
        backend: object = self.checkpointer
        self._journal = backend if isinstance(backend, JournalCapable) else None
        self._history = backend if isinstance(backend, HistoryCapable) else None
        self._events = backend if isinstance(backend, EventSource) else None
        self.leases = backend if isinstance(backend, LeaseCapable) else None
        self._prompt = backend if isinstance(backend, PromptSaveCapable) else None
        self._last: dict[str, Any] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def keeps(self) -> bool:
        """Whether anything is saved at all."""
        return self.checkpointer is not None

    def listen(self, emit: Callable[[str, dict[str, Any]], None]) -> None:
        """Pass on what the back end met, such as ``checkpoint.damaged``."""
        if self._events is not None:
            self._unsubscribe = self._events.subscribe(emit)

    async def load(self) -> dict[str, Any] | None:
        """Return the newest envelope, or None."""
        if self.checkpointer is None:
            return None
        found = await self.writer.call(self.checkpointer.get_checkpoint, self.thread_id)
        self._last = extract_checkpoint_payload(found)
        return self._last

    async def load_from(
        self, history: HistoryCapable, thread_id: str, step: int | None
    ) -> dict[str, Any] | None:
        """Return one step of any thread, as the one to go on from; None if there is no such."""
        found = await self.writer.call(history.get_checkpoint, thread_id, step=step)
        self._last = extract_checkpoint_payload(found)
        return self._last

    def go_back_to(self, envelope: dict[str, Any]) -> None:
        """Note the step to go on from."""
        self._last = envelope

    async def save(
        self,
        step: int,
        state: Mapping[str, Any],
        tree: Mapping[str, str],
        metadata: Mapping[str, Any],
    ) -> None:
        """Save one step; a back end without a journal gets the journal's records by `append`."""
        if self.checkpointer is None:
            return
        if (
            self._prompt is None
            or not self.writer.idle
            or not self._prompt.try_save_checkpoint(self.thread_id, step, state, tree, metadata)
        ):
            await self.writer.call(
                self.checkpointer.save_checkpoint,
                self.thread_id,
                step,
                state,
                tree_state=tree,
                runtime_metadata=metadata,
            )
        self._last = make_checkpoint_envelope(step, state, tree, metadata)

    async def read_journal(self) -> list[JournalRecord]:
        """Return the records saved since the last checkpoint."""
        if self._journal is not None:
            records: list[JournalRecord] = await self.writer.call(self._journal.read_journal, self.thread_id)
            return records
        if self._last is None:
            return []
        return list(self._last["runtime_metadata"].get(RUNNER_KEY, {}).get("journal", []))

    async def append(self, record: JournalRecord, live: Sequence[JournalRecord]) -> None:
        """Save one record.

        Args:
            record: The new one.
            live: All that count, the new one included, for a back end without a journal.
        """
        if self._journal is not None:
            await self.writer.call(self._journal.append_journal, self.thread_id, record)
        elif self.checkpointer is not None:
            await self.writer.call(self._save_again, list(live))

    def _save_again(self, live: list[JournalRecord]) -> Any:
        """Save the last step once more, with the journal inside; for back ends of two methods."""
        assert self.checkpointer is not None
        assert self._last is not None
        metadata = dict(self._last["runtime_metadata"])
        metadata[RUNNER_KEY] = {**metadata.get(RUNNER_KEY, {}), "journal": live}
        return self.checkpointer.save_checkpoint(
            self.thread_id,
            self._last["step"],
            self._last["state"],
            tree_state=self._last["tree"],
            runtime_metadata=metadata,
        )

    @property
    def has_journal(self) -> bool:
        """Whether the back end keeps the journal by itself."""
        return self._journal is not None

    async def trim(self, keep: Sequence[JournalRecord]) -> None:
        """Drop all other records."""
        if self._journal is not None:
            await self.writer.call(self._journal.trim_journal, self.thread_id, keep)

    def history(self, wanted: str) -> HistoryCapable:
        """Return the back end as one with history.

        Raises:
            ConfigError: There is no checkpointer.
            CapabilityError: It keeps no history.
        """
        if self.checkpointer is None:
            raise ConfigError(f"{wanted} needs a checkpointer that keeps history")
        if self._history is None:
            raise CapabilityError(
                type(self.checkpointer).__name__,
                wanted,
                "use a checkpointer that keeps history, such as File",
            )
        return self._history

    async def close(self) -> None:
        """Wait for calls under way; the back end stays open, as it may serve other runs."""
        await self.writer.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
