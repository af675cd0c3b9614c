"""What the SQL back ends share: saves that cost what changed, history, journal and leases.

A thread is a chain of rows. A delta leads on from the row before it; once the deltas since the last snapshot
outweigh it, the next row is a snapshot. So all that is written is linear in what was said, and reading any
step is one bounded read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from jianmu.errors import (
    CheckpointArgumentError,
    CheckpointCorruptError,
    CheckpointExistsError,
    StorageError,
)
from jianmu.memory.checkpoint.arguments import (
    check_limits,
    check_step,
    check_thread_id,
    no_such_step,
    require_later_step,
)
from jianmu.memory.checkpoint.base import CheckpointInfo, Cipher
from jianmu.memory.checkpoint.chain import (
    NONE,
    BrokenRowError,
    Row,
    thread_key,
)
from jianmu.memory.checkpoint.content import Content
from jianmu.memory.checkpoint.delta_cache import DeltaCache, Place
from jianmu.memory.checkpoint.sql_lease import Session
from jianmu.memory.checkpoint.sql_schema import READ_STEP
from jianmu.memory.checkpoint.sql_threads import ATTEMPTS, SqlThreads

__all__ = ["DeltaCheckpointer"]

T = TypeVar("T")

_LAST = 2**63 - 1
_ROW_CHARGE = 96  # what a row costs a reader beside its bytes; keeps tiny deltas from piling up
_LEFT_OVER = (
    "SELECT s.step FROM jianmu_step s WHERE s.thread = ? "
    "AND NOT EXISTS (SELECT 1 FROM jianmu_thread t WHERE t.thread = ?) LIMIT 1"
)
_INSERT_STEP = (
    "INSERT INTO jianmu_step (thread, step, before, base, saved, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class DeltaCheckpointer(SqlThreads):
    """The checkpointer of a SQL database; a back end says how statements are run.

    Args:
        cipher: Seals what is stored, or None.
        clock: Seconds since the epoch, for `CheckpointInfo.time`.
        cache_bytes: How much stored form to remember as the base of the next deltas. A thread that was
            dropped from it is read once more at its next save.
    """

    def __init__(self, *, cipher: Cipher | None, clock: Callable[[], float], cache_bytes: int) -> None:
        super().__init__(cipher)
        self._clock = clock
        self._cache = DeltaCache(cache_bytes)

    # What a back end defines, beside how statements are run

    @abstractmethod
    def _advance(self, key: bytes, place: Place, row: Row, condition: str, values: Sequence[object]) -> bool:
        """Put `row` in and move the thread's row on to it, if that is still at `place`.

        Args:
            key: The thread.
            place: Where it must be.
            row: The new row.
            condition: A further condition on the thread's row, with its `values`.
            values: Those.
        """

    @abstractmethod
    def _reclaim(self) -> None:
        """Give freed space back, where the database does not do so by itself."""

    def _is_damage(self, error: StorageError) -> bool:
        """Return whether an error means that the stored bytes themselves are damaged."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Give back every lease and free files and connections; safe to call twice."""

    # The two methods of every checkpointer

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
            CheckpointCorruptError: The newest step no longer checks, and nothing is put on top of it.
            EncodeError: A value that is not plain JSON data.
            ThreadBusyError: Another run holds the thread.
            LeaseLostError: Another run took over, or the thread was deleted.
            StorageError: The database refused. After any of these the last good checkpoint is what it was.
        """
        check_thread_id(thread_id)
        _check_step(step)
        key = thread_key(thread_id)
        place = self._cache.get(key)
        content = Content(state_dump, tree_state, runtime_metadata, place.content if place else None)
        saved = float(self._clock())
        for attempt in range(ATTEMPTS):
            if place is None or step <= place.step:
                place = self._find_place(thread_id, key)
            require_later_step(thread_id, step, None if place.step == NONE else place.step)
            row, following = self._next(thread_id, place, step, content, saved, whole=attempt > 2)
            if self._try_advance(thread_id, key, place, row):
                self._cache.put(key, following)
                return
            self._cache.forget(key)
            place = None
        raise StorageError(f"thread {thread_id!r}: others saved first, {ATTEMPTS} times; try again")

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Return the envelope at `step` (None = newest), or None; a snapshot and the deltas since are read.

        Raises:
            CheckpointCorruptError: A row that it needs no longer checks; it names the step before.
            CheckpointFormatError: It is of a newer format.
            CipherError: The key is wrong, or a row was altered or never sealed.
            StorageError: The database refused.
        """
        check_thread_id(thread_id)
        if step is not None:
            _check_step(step)
        found = self._load(thread_id, thread_key(thread_id), step)
        if found is None:
            return None
        _, newest, rows = found
        wanted = newest if step is None else step
        if wanted == NONE or (wanted != newest and (not rows or rows[-1].step != wanted)):
            return None
        return {"step": wanted, **self._rebuild(thread_id, wanted, rows)}

    # History

    def list_checkpoints(self, thread_id: str, *, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the heads of the saved steps, newest first; `size` is what the step alone takes."""
        check_thread_id(thread_id)
        sql = (
            "SELECT step, saved, length(body) FROM jianmu_step WHERE thread = ? ORDER BY step DESC LIMIT "
            + str(_LAST if limit is None else max(int(limit), 0))
        )
        found = self._read(lambda session: session.rows(sql, thread_key(thread_id)))
        return [
            CheckpointInfo(step=cast(int, step), time=_moment(cast(float, saved)), size=cast(int, size))
            for step, saved, size in found
        ]

    def list_threads(self) -> list[str]:
        """Return the ids of all threads, sorted."""
        sql = "SELECT name FROM jianmu_thread WHERE step >= 0"
        found = self._read(lambda session: session.rows(sql))
        return sorted(bytes(cast(bytes, name)).decode("utf-8", "surrogatepass") for (name,) in found)

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread with its journal and lease; return whether there was one.

        A run that holds the thread gets `LeaseLostError` at its next save.
        """
        check_thread_id(thread_id)
        key = thread_key(thread_id)

        def work(session: Session) -> bool:
            existed = session.run("DELETE FROM jianmu_thread WHERE thread = ? AND step >= 0", key)
            session.run("DELETE FROM jianmu_thread WHERE thread = ?", key)
            session.run("DELETE FROM jianmu_step WHERE thread = ?", key)
            session.run("DELETE FROM jianmu_journal WHERE thread = ?", key)
            return bool(existed)

        self._cache.forget(key)
        existed = self._write(work)
        self._cache.forget(key)
        self._reclaim()
        return existed

    def fork_thread(self, thread_id: str, new_thread_id: str, *, step: int | None = None) -> None:
        """Copy a thread up to and with `step` (None = newest) to a new id; the journal is not copied.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            CheckpointExistsError: The new id is taken.
            CheckpointCorruptError: A step to copy no longer checks.
        """
        check_thread_id(thread_id)
        check_thread_id(new_thread_id)
        rows = self._rows_until(thread_id, step)
        try:
            copies = [self._codec.copy(row, thread_id, new_thread_id) for row in rows]
        except BrokenRowError as error:
            raise self._corrupt(thread_id, error) from error
        key = thread_key(new_thread_id)

        def work(session: Session) -> None:
            self._ensure_thread(session, new_thread_id, key)
            if cast(int, self._seize(session, new_thread_id, key)) != NONE:
                raise CheckpointExistsError(
                    f"thread {new_thread_id!r} exists; fork to another id, or delete it first"
                )
            for row in copies:
                session.run(_INSERT_STEP, key, *_values(row))
            session.run("UPDATE jianmu_thread SET step = ? WHERE thread = ?", copies[-1].step, key)

        self._write(work)

    def truncate_thread(self, thread_id: str, *, step: int) -> int:
        """Drop every step saved after `step` and the journal; return how many were dropped.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            ThreadBusyError: Another run holds the thread.
        """
        check_thread_id(thread_id)
        _check_step(step)
        key = thread_key(thread_id)

        def work(session: Session) -> int:
            self._seize(session, thread_id, key)
            if not session.rows("SELECT step FROM jianmu_step WHERE thread = ? AND step = ?", key, step):
                raise no_such_step(thread_id, step)
            dropped = session.run("DELETE FROM jianmu_step WHERE thread = ? AND step > ?", key, step)
            session.run("DELETE FROM jianmu_journal WHERE thread = ?", key)
            session.run("UPDATE jianmu_thread SET step = ? WHERE thread = ?", step, key)
            return dropped

        dropped = self._write(work)
        self._cache.forget(key)
        return dropped

    def prune(
        self, thread_id: str, *, keep_last: int | None = None, older_than: datetime | None = None
    ) -> int:
        """Drop old steps, never the newest; return how many. A step whose base goes becomes a snapshot.

        Raises:
            CheckpointArgumentError: Neither limit, or one that means nothing.
            CheckpointCorruptError: A step that stays cannot be read, so nothing was dropped.
            ThreadBusyError: Another run holds the thread.
        """
        check_thread_id(thread_id)
        check_limits(keep_last, older_than)
        key = thread_key(thread_id)
        limit = None if older_than is None else older_than.timestamp()

        def work(session: Session) -> int:
            if self._seize(session, thread_id, key) is None:
                return 0
            sql = "SELECT step, saved, before FROM jianmu_step WHERE thread = ? ORDER BY step"
            heads = cast(list[tuple[int, float, int]], session.rows(sql, key))
            gone = _prunable(heads, keep_last or 1, limit)
            orphans = [step for step, _, before in heads if before in gone and step not in gone]
            snapshots = [self._as_snapshot(session, thread_id, key, step) for step in orphans]
            for snapshot in snapshots:
                self._put_snapshot(session, key, snapshot)
            for first, last in _ranges([step for step, _, _ in heads], gone):
                sql = "DELETE FROM jianmu_step WHERE thread = ? AND step >= ? AND step <= ?"
                session.run(sql, key, first, last)
            return len(gone)

        dropped = self._write(work)
        self._cache.forget(key)
        if dropped:
            self._reclaim()
        return dropped

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Within: steps

    def _load(self, thread_id: str, key: bytes, step: int | None) -> tuple[int, int, list[Row]] | None:
        """Return incarnation, newest step, and the rows that lead to `step`; None if there is no thread."""
        last = _LAST if step is None else step
        try:
            found = self._read(lambda session: session.rows(READ_STEP, last, key, last, key))
        except StorageError as error:
            if self._is_damage(error):
                raise CheckpointCorruptError(
                    f"thread {thread_id!r}: {error}", thread_id=thread_id, step=step
                ) from error
            raise
        if not found:
            if self._read(lambda session: session.rows(_LEFT_OVER, key, key)):
                raise CheckpointCorruptError(
                    f"thread {thread_id!r} has steps but no entry of its own, which is damage; restore a "
                    "copy, or delete_thread() to begin anew",
                    thread_id=thread_id,
                )
            return None
        rows = [Row._make(each[2:]) for each in found if each[2] is not None]
        return cast(int, found[0][0]), cast(int, found[0][1]), rows

    def _find_place(self, thread_id: str, key: bytes) -> Place:
        """Read where a thread stands, and make it if it is new."""
        found = self._load(thread_id, key, None)
        if found is None:
            self._write(lambda session: self._explain_refusal(session, thread_id, key, create=True))
            found = self._load(thread_id, key, None)
            if found is None:
                raise StorageError(f"thread {thread_id!r} was deleted while it was saved; try again")
        incarnation, newest, rows = found
        if newest == NONE:
            return Place(incarnation, NONE, NONE, 0, 0, Content({}, None, None))
        kept = self._rebuild(thread_id, newest, rows)
        content = Content(kept["state"], kept["tree"], kept["runtime_metadata"])
        deltas = sum(len(row.body) + _ROW_CHARGE for row in rows[1:])
        return Place(incarnation, newest, rows[0].step, len(rows[0].body), deltas, content)

    def _next(
        self, thread_id: str, place: Place, step: int, content: Content, saved: float, *, whole: bool
    ) -> tuple[Row, Place]:
        """Return the row to write, and where the thread stands after it."""
        if place.step != NONE and not whole:
            text = content.changes_from(place.content)
            deltas = place.deltas + len(text) + _ROW_CHARGE
            if deltas <= place.snapshot:
                row = self._codec.row(thread_id, step, text, saved=saved, before=place.step, base=place.base)
                return row, Place(place.incarnation, step, place.base, place.snapshot, deltas, content)
        row = self._codec.row(thread_id, step, content.snapshot(), saved=saved, before=NONE, base=step)
        return row, Place(place.incarnation, step, step, len(row.body), 0, content)

    def _try_advance(self, thread_id: str, key: bytes, place: Place, row: Row) -> bool:
        """Write a row; False if the thread is not at `place` any more."""
        condition, values = self._right(self._leases.get(key))
        if self._advance(key, place, row, condition, values):
            return True
        self._write(lambda session: self._explain_refusal(session, thread_id, key))
        sql = "SELECT sum, body FROM jianmu_step WHERE thread = ? AND step = ?"
        found = self._read(lambda session: session.rows(sql, key, row.step))
        # Written after all, by an attempt whose answer was lost with the connection.
        return bool(found) and (found[0][0], bytes(cast(bytes, found[0][1]))) == (row.sum, row.body)

    def _rebuild(self, thread_id: str, step: int, rows: list[Row]) -> dict[str, Any]:
        try:
            if not rows or rows[-1].step != step:
                raise BrokenRowError("the step is missing", step)
            return self._codec.rebuild(thread_id, rows)
        except BrokenRowError as error:
            raise self._corrupt(thread_id, error) from error

    def _corrupt(self, thread_id: str, error: BrokenRowError) -> CheckpointCorruptError:
        previous = self._newest_whole_before(thread_id, error.step)
        remedy = (
            "no step before it can be read"
            if previous is None
            else f"the step before it, {previous}, is whole: get_checkpoint(..., step={previous}), or "
            f"truncate_thread(..., step={previous}) to go on from there"
        )
        return CheckpointCorruptError(
            f"thread {thread_id!r}, step {error.step}: {error}; {remedy}",
            thread_id=thread_id,
            step=error.step,
            previous_step=previous,
        )

    def _newest_whole_before(self, thread_id: str, step: int) -> int | None:
        key = thread_key(thread_id)
        while step > 0:
            found = self._load(thread_id, key, step - 1)
            if found is None or not found[2]:
                return None
            try:
                self._codec.rebuild(thread_id, found[2])
            except BrokenRowError as error:
                step = min(error.step, step - 1)
            else:
                return found[2][-1].step
        return None

    def _rows_until(self, thread_id: str, step: int | None) -> list[Row]:
        sql = (
            "SELECT step, before, base, saved, sum, body FROM jianmu_step "
            "WHERE thread = ? AND step <= ? ORDER BY step"
        )
        last = _LAST if step is None else step
        found = self._read(lambda session: session.rows(sql, thread_key(thread_id), last))
        rows = [Row._make(each) for each in found]
        if not rows or (step is not None and rows[-1].step != step):
            raise no_such_step(thread_id, step)
        return rows

    def _as_snapshot(self, session: Session, thread_id: str, key: bytes, step: int) -> Row:
        rows = [Row._make(each[2:]) for each in session.rows(READ_STEP, step, key, step, key)]
        try:
            kept = self._codec.rebuild(thread_id, rows)
        except BrokenRowError as error:
            raise CheckpointCorruptError(
                f"thread {thread_id!r}, step {error.step}: {error}; nothing was pruned",
                thread_id=thread_id,
                step=error.step,
            ) from error
        text = Content(kept["state"], kept["tree"], kept["runtime_metadata"]).snapshot()
        return self._codec.row(thread_id, step, text, saved=rows[-1].saved, before=NONE, base=step)

    def _put_snapshot(self, session: Session, key: bytes, row: Row) -> None:
        old = session.rows("SELECT base FROM jianmu_step WHERE thread = ? AND step = ?", key, row.step)
        session.run(
            "UPDATE jianmu_step SET before = -1, base = ?, sum = ?, body = ? WHERE thread = ? AND step = ?",
            *(row.step, row.sum, row.body, key, row.step),
        )
        session.run(
            "UPDATE jianmu_step SET base = ? WHERE thread = ? AND step > ? AND base = ?",
            *(row.step, key, row.step, old[0][0]),
        )


def _check_step(step: int) -> None:
    check_step(step)
    if step > _LAST - 1:
        raise CheckpointArgumentError("step must be less than 2**63 - 1")


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _values(row: Row) -> tuple[object, ...]:
    return row.step, row.before, row.base, row.saved, row.sum, row.body


def _prunable(heads: Sequence[tuple[int, float, int]], keep_last: int, limit: float | None) -> set[int]:
    old = heads[:-keep_last]
    return {step for step, saved, _ in old if limit is None or saved < limit}


def _ranges(steps: Sequence[int], gone: set[int]) -> list[tuple[int, int]]:
    """Return the first and last step of each run of steps that go."""
    ranges: list[tuple[int, int]] = []
    open_run = False
    for step in steps:
        if step not in gone:
            open_run = False
        elif open_run:
            ranges[-1] = (ranges[-1][0], step)
        else:
            ranges.append((step, step))
            open_run = True
    return ranges
