"""What the SQL back ends share: saves that cost what changed.

A thread is a chain of rows. A delta leads on from the row before it; once the deltas since the last snapshot
outweigh it, the next row is a snapshot. So all that is written is linear in what was said, and reading any
step is one bounded read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from jianmu.errors import StorageError
from jianmu.memory.checkpoint.arguments import check_step, check_thread_id, require_later_step
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.chain import BUNDLE, NONE, Read, Row
from jianmu.memory.checkpoint.content import Content
from jianmu.memory.checkpoint.delta_cache import Place
from jianmu.memory.checkpoint.delta_history import DeltaHistory
from jianmu.memory.checkpoint.sql_schema import thread_key
from jianmu.memory.checkpoint.sql_threads import ATTEMPTS

__all__ = ["DeltaCheckpointer"]

_ROW_CHARGE = 96  # what a row costs a reader beside its bytes; keeps tiny deltas from piling up
_PROMPT_BYTES = 2**15  # what is encoded and written in less time than a change of threads takes
_BUNDLED = 64  # steps a bundle; a reader of N deltas needs N / 64 bundles and fewer than 64 single rows


class DeltaCheckpointer(DeltaHistory):
    """The checkpointer of a SQL database; a back end says how statements are run.

    Args:
        cipher: Seals what is stored, or None.
        clock: Seconds since the epoch, for `CheckpointInfo.time`.
        cache_bytes: How much stored form to remember as the base of the next deltas. A thread that was
            dropped from it is read once more at its next save.
    """

    def __init__(self, *, cipher: Cipher | None, clock: Callable[[], float], cache_bytes: int) -> None:
        super().__init__(cipher=cipher, cache_bytes=cache_bytes)
        self._clock = clock
        self._is_prompt = False

    # What a back end defines, beside how statements are run

    @abstractmethod
    def _advance(
        self, key: bytes, place: Place, rows: Sequence[Row], condition: str, values: Sequence[object]
    ) -> bool:
        """Put the rows of one step in and move the thread's row on to it, if that is still at `place`.

        Args:
            key: The thread.
            place: Where it must be.
            rows: The step's own row, then those for the table of parts.
            condition: A further condition on the thread's row, with its `values`.
            values: Those.
        """

    def _advance_promptly(
        self, key: bytes, place: Place, row: Row, condition: str, values: Sequence[object]
    ) -> bool:
        """Do `_advance` for one row if that takes no waiting; return whether it is done.

        Called only if the back end has set `_is_prompt`.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Give back every lease and free files and connections; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep one step; it costs what changed since the step before, and is durable when this returns.

        Raises:
            CheckpointArgumentError: An empty thread id, or a step that is no non-negative int.
            CheckpointExistsError: The thread already has this step or a later one.
            CheckpointCorruptError: The newest step fails its checksum, and nothing is put on top of it.
            EncodeError: A value that is not plain JSON data.
            ThreadBusyError: Another run holds the thread.
            LeaseLostError: Another run took over, or the thread was deleted.
            StorageError: The database refused. After any of these the last good checkpoint is what it was.
        """
        check_thread_id(thread_id)
        check_step(step)
        key = thread_key(thread_id)
        place = self._cache.get(key)
        content = Content(state_dump, tree_state, runtime_metadata, place.content if place else None)
        saved = float(self._clock())
        for attempt in range(ATTEMPTS):
            if place is None or step <= place.step:
                place = self._find_place(thread_id, key)
            require_later_step(thread_id, step, None if place.step == NONE else place.step)
            rows, following = self._next(thread_id, place, step, content, saved, whole=attempt > 2)
            if self._try_advance(thread_id, key, place, rows):
                self._cache.put(key, following)
                return
            self._cache.forget(key)
            place = None
        raise StorageError(f"thread {thread_id!r}: others saved first, {ATTEMPTS} times; try again")

    def try_save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Do `save_checkpoint` if it waits for nothing; return whether it is done, with the same errors.

        It succeeds only for a small delta, when this process saved the previous step, nothing has to be
        flushed, and no other writer is active.
        """
        check_thread_id(thread_id)
        check_step(step)
        key = thread_key(thread_id)
        place = self._cache.get(key)
        if not self._is_prompt or place is None or step <= place.step or len(place.tail) >= _BUNDLED - 1:
            return False
        content = Content(state_dump, tree_state, runtime_metadata, place.content)
        text = content.changes_from(place.content)
        deltas = place.deltas + len(text) + _ROW_CHARGE
        if deltas > place.snapshot or len(text) > _PROMPT_BYTES:
            return False
        saved = float(self._clock())
        rows, following = self._next_delta(thread_id, place, step, content, saved, text, deltas)
        condition, values = self._right(self._leases.get(key))
        if not self._advance_promptly(key, place, rows[0], condition, values):
            return False
        self._cache.put(key, following)
        return True

    def _find_place(self, thread_id: str, key: bytes) -> Place:
        """Read where a thread stands, and make it if it is new."""
        found = self._find(thread_id, None)
        if found is None:
            self._write(lambda session: self._explain_refusal(session, thread_id, key, create=True))
            found = self._find(thread_id, None)
            if found is None:
                raise StorageError(f"thread {thread_id!r} was deleted while it was saved; try again")
        if found.newest == NONE:
            return Place(found.incarnation, NONE, NONE, 0, 0, Content({}, None, None), (), NONE)
        kept, base = found.content, found.reads[0].step
        content = Content(kept["state"], kept["tree"], kept["runtime_metadata"])
        snapshot = sum(read.size for read in found.reads if read.step == base)
        deltas = sum(_cost(read) for read in found.reads if read.step > base)
        single = [read for read in found.reads if read.text]
        after = single[0].before if single else found.newest
        tail = tuple(read.text for read in single)
        return Place(found.incarnation, found.newest, base, snapshot, deltas, content, tail, after)

    def _next(
        self, thread_id: str, place: Place, step: int, content: Content, saved: float, *, whole: bool
    ) -> tuple[list[Row], Place]:
        """Return the rows to write, and where the thread stands after them."""
        if place.step != NONE and not whole:
            text = content.changes_from(place.content)
            deltas = place.deltas + len(text) + _ROW_CHARGE
            if deltas <= place.snapshot:
                return self._next_delta(thread_id, place, step, content, saved, text, deltas)
        rows = self._codec.snapshot(thread_id, step, content.snapshot(), saved=saved)
        size = sum(len(row.body) for row in rows)
        return rows, Place(place.incarnation, step, step, size, 0, content, (), step)

    def _next_delta(
        self,
        thread_id: str,
        place: Place,
        step: int,
        content: Content,
        saved: float,
        text: bytes,
        deltas: int,
    ) -> tuple[list[Row], Place]:
        row = self._codec.delta(thread_id, step, text, saved=saved, before=place.step, base=place.base)
        rows, tail, after = [row], (*place.tail, text), place.tail_after
        if len(tail) >= _BUNDLED:
            rows.append(self._codec.bundle(thread_id, step, tail, before=after, base=place.base))
            tail, after = (), step
        return rows, Place(place.incarnation, step, place.base, place.snapshot, deltas, content, tail, after)

    def _try_advance(self, thread_id: str, key: bytes, place: Place, rows: Sequence[Row]) -> bool:
        """Write the rows; False if the thread is not at `place` any more."""
        condition, values = self._right(self._leases.get(key))
        if self._advance(key, place, rows, condition, values) or self._is_in(key, rows[0]):
            return True
        self._write(lambda session: self._explain_refusal(session, thread_id, key))
        return False

    def _is_in(self, key: bytes, row: Row) -> bool:
        """Whether a row was written after all: the answer was lost, or one beside it failed."""
        sql = "SELECT sum, body FROM jianmu_step WHERE thread = ? AND step = ?"
        found = self._read(lambda session: session.rows(sql, key, row.step))
        return bool(found) and (found[0][0], found[0][1]) == (row.sum, row.body)


def _cost(read: Read) -> int:
    return read.size + _ROW_CHARGE * (_BUNDLED if read.part == BUNDLE else 1)
