"""Changing the history of a thread of a SQL database: forget, fork, go back, prune."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import cast

from jianmu.errors import CheckpointCorruptError, CheckpointExistsError
from jianmu.memory.checkpoint.arguments import check_limits, check_step, check_thread_id, no_such_step
from jianmu.memory.checkpoint.base import Cipher
from jianmu.memory.checkpoint.chain import BUNDLE, NONE, BrokenRowError, Row
from jianmu.memory.checkpoint.content import Content
from jianmu.memory.checkpoint.delta_cache import DeltaCache
from jianmu.memory.checkpoint.delta_reader import LAST, DeltaReader
from jianmu.memory.checkpoint.sql_lease import Session
from jianmu.memory.checkpoint.sql_schema import thread_key

__all__ = ["DeltaHistory"]

_ROWS_UNTIL = """
    SELECT step, before, base, saved, sum, body, 0 FROM jianmu_step WHERE thread = ? AND step <= ?
    UNION ALL
    SELECT step, before, step, 0.0, sum, body, part FROM jianmu_part
    WHERE thread = ? AND step <= ? AND part > 0
"""
_INSERT_STEP = (
    "INSERT INTO jianmu_step (thread, step, before, base, saved, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_PART = "INSERT INTO jianmu_part (thread, step, part, before, sum, body) VALUES (?, ?, ?, ?, ?, ?)"


class DeltaHistory(DeltaReader):
    """Changes which steps there are.

    Args:
        cipher: Seals what is stored, or None.
        cache_bytes: How much stored form to remember as the base of the next deltas.
    """

    def __init__(self, *, cipher: Cipher | None, cache_bytes: int) -> None:
        super().__init__(cipher)
        self._cache = DeltaCache(cache_bytes)

    @abstractmethod
    def _reclaim(self) -> None:
        """Give freed space back, where the database does not do so by itself."""

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread with its journal and lease; return whether there was one.

        A run that holds the thread gets `LeaseLostError` at its next save.
        """
        check_thread_id(thread_id)
        key = thread_key(thread_id)

        def work(session: Session) -> bool:
            existed = session.run("DELETE FROM jianmu_thread WHERE thread = ? AND step >= 0", key)
            for table in ("thread", "step", "part", "journal"):
                session.run(f"DELETE FROM jianmu_{table} WHERE thread = ?", key)
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
            CheckpointCorruptError: A step to copy fails its checksum.
        """
        check_thread_id(thread_id)
        check_thread_id(new_thread_id)
        if step is not None:
            check_step(step)
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
            session.run("DELETE FROM jianmu_journal WHERE thread = ?", key)
            for row in copies:
                if row.part:
                    session.run(_INSERT_PART, key, row.step, row.part, row.before, row.sum, row.body)
                else:
                    session.run(_INSERT_STEP, key, *row[:6])
            session.run("UPDATE jianmu_thread SET step = ? WHERE thread = ?", copies[-1].step, key)

        self._write(work)

    def truncate_thread(self, thread_id: str, *, step: int) -> int:
        """Drop every step saved after `step` and the journal; return how many were dropped.

        Raises:
            CheckpointNotFoundError: No such thread or step.
            ThreadBusyError: Another run holds the thread.
        """
        check_thread_id(thread_id)
        check_step(step)
        key = thread_key(thread_id)

        def work(session: Session) -> int:
            self._seize(session, thread_id, key)
            if not session.rows("SELECT step FROM jianmu_step WHERE thread = ? AND step = ?", key, step):
                raise no_such_step(thread_id, step)
            dropped = session.run("DELETE FROM jianmu_step WHERE thread = ? AND step > ?", key, step)
            session.run("DELETE FROM jianmu_part WHERE thread = ? AND step > ?", key, step)
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
            snapshots = [self._as_snapshot(session, thread_id, step) for step in orphans]
            for snapshot in snapshots:
                self._put_snapshot(session, key, snapshot)
            if snapshots:  # a bundle may lead across a step that is a snapshot now
                session.run("DELETE FROM jianmu_part WHERE thread = ? AND part = ?", key, BUNDLE)
            for first, last in _ranges([step for step, _, _ in heads], gone):
                for table in ("step", "part"):
                    sql = f"DELETE FROM jianmu_{table} WHERE thread = ? AND step >= ? AND step <= ?"
                    session.run(sql, key, first, last)
            return len(gone)

        dropped = self._write(work)
        self._cache.forget(key)
        if dropped:
            self._reclaim()
        return dropped

    # Within

    def _rows_until(self, thread_id: str, step: int | None) -> list[Row]:
        key, last = thread_key(thread_id), LAST if step is None else step
        found = self._read(lambda session: session.rows(_ROWS_UNTIL, key, last, key, last))
        rows = [Row(*each) for each in found]  # type: ignore[arg-type] # as selected
        rows.sort(key=lambda row: (row.step, row.part))
        steps = [row.step for row in rows if not row.part]
        if not steps or (step is not None and steps[-1] != step):
            raise no_such_step(thread_id, step)
        return rows

    def _as_snapshot(self, session: Session, thread_id: str, step: int) -> Row:
        sql = "SELECT saved FROM jianmu_step WHERE thread = ? AND step = ?"
        ((saved,),) = session.rows(sql, thread_key(thread_id), step)
        try:
            found = self._rows_to(session, thread_id, step, bundles=False)
            kept = self._codec.rebuild(found.reads if found else [])
        except BrokenRowError as error:
            raise CheckpointCorruptError(
                f"thread {thread_id!r}, step {error.step}: {error}; nothing was pruned",
                thread_id=thread_id,
                step=error.step,
            ) from error
        text = Content(kept["state"], kept["tree"], kept["runtime_metadata"]).snapshot()
        return self._codec.snapshot(thread_id, step, text, saved=cast(float, saved))[0]

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
