"""Reading a thread of a SQL database: a step, the list of steps, the list of threads."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from jianmu.errors import CheckpointCorruptError, CipherError, StorageError
from jianmu.memory.checkpoint.arguments import check_limit, check_step, check_thread_id
from jianmu.memory.checkpoint.base import CheckpointInfo
from jianmu.memory.checkpoint.chain import NONE, BrokenRowError, Read, Row
from jianmu.memory.checkpoint.sql_lease import Session
from jianmu.memory.checkpoint.sql_schema import READ_STEP, read_step, thread_key
from jianmu.memory.checkpoint.sql_threads import SqlThreads

__all__ = ["LAST", "DeltaReader", "Found"]

logger = logging.getLogger(__name__)

LAST = 2**63 - 1
"""Stands for "the newest step"."""


class Found(NamedTuple):
    """What leads to one step of a thread.

    Attributes:
        incarnation: The thread row's number.
        newest: Its newest step, -1 for none.
        reads: The rows, in order.
        content: What they lead to; nothing while the thread has no such step.
    """

    incarnation: int
    newest: int
    reads: list[Read]
    content: dict[str, Any]


class DeltaReader(SqlThreads):
    """Reads any step by one bounded query."""

    def get_checkpoint(self, thread_id: str, *, step: int | None = None) -> dict[str, Any] | None:
        """Return the envelope at `step` (None = newest), or None; a snapshot and the deltas since are read.

        Raises:
            CheckpointCorruptError: A row that it needs fails its checksum; it names the step before.
            CheckpointFormatError: It is of a newer format.
            CipherError: The key is wrong, or a row was altered or never sealed.
            StorageError: The database refused.
        """
        check_thread_id(thread_id)
        if step is not None:
            check_step(step)
        found = self._find(thread_id, step)
        if found is None:
            return None
        wanted = found.newest if step is None else step
        if wanted == NONE or not found.content or found.reads[-1].step != wanted:
            return None
        return {"step": wanted, **found.content}

    def list_checkpoints(self, thread_id: str, *, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the heads of the saved steps, newest first; `size` is what the step alone takes."""
        check_thread_id(thread_id)
        check_limit(limit)
        sql = (
            "SELECT s.step, s.saved, length(s.body) + coalesce(("
            "SELECT sum(length(p.body)) FROM jianmu_part p "
            "WHERE p.thread = s.thread AND p.step = s.step AND p.part > 0), 0) "
            "FROM jianmu_step s WHERE s.thread = ? ORDER BY s.step DESC LIMIT "
            + str(LAST if limit is None else limit)
        )
        found = self._read(lambda session: session.rows(sql, thread_key(thread_id)))
        return [
            CheckpointInfo(step=cast(int, step), time=_moment(cast(float, saved)), size=int(cast(int, size)))
            for step, saved, size in found
        ]

    def list_threads(self) -> list[str]:
        """Return the ids of all threads, sorted."""
        sql = "SELECT name FROM jianmu_thread WHERE step >= 0"
        found = self._read(lambda session: session.rows(sql))
        return sorted(bytes(cast(bytes, name)).decode("utf-8", "surrogatepass") for (name,) in found)

    # Within

    def _is_damage(self, error: StorageError) -> bool:
        """Return whether an error means that the stored bytes themselves are damaged."""
        return False

    def _find(self, thread_id: str, step: int | None) -> Found | None:
        """Read what leads to a step; None if there is no thread.

        If a bundle is damaged, it reads the single steps instead and logs a warning.

        Raises:
            CheckpointCorruptError: A row is damaged or missing.
        """
        try:
            return self._load(thread_id, step)
        except (BrokenRowError, CipherError) as error:
            found = self._find_singly(thread_id, step)
            logger.warning(
                "thread %r: a bundle is damaged (%s); its single steps are whole", thread_id, error
            )
            return found

    def _find_singly(self, thread_id: str, step: int | None) -> Found | None:
        try:
            return self._load(thread_id, step, bundles=False)
        except BrokenRowError as error:
            raise self._corrupt(thread_id, error) from error

    def _load(self, thread_id: str, step: int | None, *, bundles: bool = True) -> Found | None:
        try:
            found = self._read(lambda session: self._rows_to(session, thread_id, step, bundles=bundles))
        except StorageError as error:
            if self._is_damage(error):
                raise CheckpointCorruptError(
                    f"thread {thread_id!r}: {error}", thread_id=thread_id, step=step
                ) from error
            raise
        if found is None or not found.reads:
            if found is not None and step is None and found.newest != NONE:
                raise BrokenRowError("the step is missing", found.newest)
            return found
        if step is None and found.reads[-1].step != found.newest:
            raise BrokenRowError("the step is missing", found.newest)
        return found._replace(content=self._codec.rebuild(found.reads))

    def _rows_to(self, session: Session, thread_id: str, step: int | None, *, bundles: bool) -> Found | None:
        """Read the rows that lead to a step one by one: no second copy of a long thread is ever held."""
        values = read_step(thread_key(thread_id), LAST if step is None else step, bundles=bundles)
        place: tuple[int, int] | None = None
        reads: list[Read] = []
        for each in session.each(READ_STEP, *values):
            if each[5] is None:
                place = cast(int, each[0]), cast(int, each[1])
            else:
                reads.append(self._codec.read(thread_id, Row(*each)))  # type: ignore[arg-type] # as selected
        if place is None:
            if reads:
                raise CheckpointCorruptError(
                    f"thread {thread_id!r} has steps but no entry of its own, which is damage; restore a "
                    "copy, or delete_thread() to begin anew",
                    thread_id=thread_id,
                )
            return None
        return Found(*place, sorted(reads, key=_place), {})

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
        while step > 0:
            try:
                found = self._load(thread_id, step - 1, bundles=False)
            except BrokenRowError as error:
                step = min(error.step, step - 1)
            else:
                return found.reads[-1].step if found is not None and found.reads else None
        return None


def _place(read: Read) -> tuple[int, int]:
    return read.step, read.part


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
