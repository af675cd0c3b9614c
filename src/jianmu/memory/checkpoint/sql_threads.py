"""What the SQL back ends share beside the steps: the right to write a thread, and its journal."""

from __future__ import annotations

import os
import secrets
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from jianmu.errors import CheckpointArgumentError, CheckpointCorruptError, StorageError
from jianmu.memory.checkpoint.arguments import check_thread_id
from jianmu.memory.checkpoint.base import Cipher, JournalRecord
from jianmu.memory.checkpoint.chain import RowCodec
from jianmu.memory.checkpoint.content import from_text
from jianmu.memory.checkpoint.journal import live_records
from jianmu.memory.checkpoint.plain import encode_plain
from jianmu.memory.checkpoint.sql_lease import Session, SqlLease, busy, holder_has_died, this_holder
from jianmu.memory.checkpoint.sql_schema import id_bytes, thread_key

__all__ = ["ATTEMPTS", "FREE", "SqlThreads"]

T = TypeVar("T")

ATTEMPTS = 8
FREE = "(fence IS NULL OR lease_until <= now())"
"""The condition on a thread's row that nobody holds it."""


class SqlThreads(ABC):
    """Leases and journals in a SQL database; a back end says how statements are run.

    Args:
        cipher: Seals what is stored, or None.
    """

    def __init__(self, cipher: Cipher | None) -> None:
        self._codec = RowCodec(cipher)
        self._held: dict[bytes, SqlLease] = {}
        self._pid = os.getpid()

    @property
    def _leases(self) -> dict[bytes, SqlLease]:
        """The leases of this process: those that a forked child finds here are its parent's."""
        if self._pid != os.getpid():
            for lease in self._held.values():
                lease.mark_lost()
            self._held, self._pid = {}, os.getpid()
        return self._held

    # What a back end defines

    @abstractmethod
    def _read(self, work: Callable[[Session], T]) -> T:
        """Run `work`, one query, and return what it returns."""

    @abstractmethod
    def _write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in one transaction, perhaps more than once, and return what it returned last."""

    def _write_one(self, sql: str, *values: object) -> int:
        """Run one statement by itself, perhaps more than once, and return how many rows it changed."""
        return self._write(lambda session: session.run(sql, *values))

    # Leases

    def acquire(self, thread_id: str, ttl: float = 30.0) -> SqlLease:
        """Take the thread for `ttl` seconds by the database's clock, also from a holder known to be dead.

        Raises:
            CheckpointArgumentError: A ttl that is not over 0.
            ThreadBusyError: Another live holder has it.
        """
        check_thread_id(thread_id)
        if not ttl > 0:
            raise CheckpointArgumentError(f"ttl must be over 0 seconds, not {ttl!r}")
        key = thread_key(thread_id)
        lease = SqlLease(thread_id, ttl, self._extend, self._give_back)

        def work(session: Session) -> None:
            self._make_thread(session, thread_id, key)
            fence, holder, seconds = self._holder(session, key)
            dead = fence if holder_has_died(holder) else None
            sql = (
                "UPDATE jianmu_thread SET fence = ?, lease_until = now() + ?, holder = ? "
                f"WHERE thread = ? AND (fence = ? OR {FREE})"
            )
            if not session.run(sql, lease.fence, float(ttl), this_holder(), key, dead):
                raise busy(thread_id, holder, seconds)

        self._write(work)
        self._leases[key] = lease
        return lease

    # Journal

    def append_journal(self, thread_id: str, record: JournalRecord) -> None:
        """Keep one answer; durable like a save, and with the same errors."""
        check_thread_id(thread_id)
        key = thread_key(thread_id)
        body = self._codec.seal("journal", thread_id, 0, encode_plain(record))
        lease = self._leases.get(key)
        if lease is not None:
            lease.journal_is_empty = False
        condition, values = self._right(lease)
        sql = (
            "INSERT INTO jianmu_journal (thread, place, sum, body) "
            "SELECT held.thread, "
            "(SELECT coalesce(max(place), 0) + 1 FROM jianmu_journal WHERE thread = ?), ?, ? "
            f"FROM (SELECT thread FROM jianmu_thread WHERE thread = ? AND {condition} FOR UPDATE) held"
        )
        for _ in range(ATTEMPTS):
            if self._write_one(sql, key, zlib.crc32(body), body, key, *values):
                return
            self._write(lambda session: self._explain_refusal(session, thread_id, key, create=True))
        raise StorageError(f"thread {thread_id!r}: the journal could not be written; try again")

    def read_journal(self, thread_id: str) -> list[JournalRecord]:
        """Return the live records in the order of writing.

        Raises:
            CheckpointCorruptError: A record fails its checksum.
        """
        check_thread_id(thread_id)
        key = thread_key(thread_id)
        sql = "SELECT sum, body FROM jianmu_journal WHERE thread = ? ORDER BY place"
        found = self._read(lambda session: session.rows(sql, key))
        records: list[JournalRecord] = []
        for checksum, stored in found:
            body = bytes(cast(bytes, stored))
            if zlib.crc32(body) != checksum:
                raise CheckpointCorruptError(
                    f"thread {thread_id!r}: a record of the journal fails its checksum; truncate_thread() to "
                    "the newest step drops the journal",
                    thread_id=thread_id,
                )
            records.append(from_text(self._codec.open("journal", thread_id, 0, body)))
        lease = self._leases.get(key)
        if lease is not None and not records:
            lease.journal_is_empty = True
        return live_records(records)

    def trim_journal(self, thread_id: str, keep: Sequence[JournalRecord]) -> None:
        """Replace the journal by `keep`; nothing is sent while it is known to be empty."""
        check_thread_id(thread_id)
        key = thread_key(thread_id)
        lease = self._leases.get(key)
        if lease is not None and lease.journal_is_empty and not keep:
            return
        bodies = [self._codec.seal("journal", thread_id, 0, encode_plain(record)) for record in keep]

        def work(session: Session) -> None:
            if bodies:
                self._ensure_thread(session, thread_id, key)
            self._explain_refusal(session, thread_id, key)
            session.run("DELETE FROM jianmu_journal WHERE thread = ?", key)
            for place, body in enumerate(bodies, 1):
                sql = "INSERT INTO jianmu_journal (thread, place, sum, body) VALUES (?, ?, ?, ?)"
                session.run(sql, key, place, zlib.crc32(body), body)

        self._write(work)
        if lease is not None:
            lease.journal_is_empty = not keep

    # Within

    def _extend(self, lease: SqlLease) -> bool:
        sql = "UPDATE jianmu_thread SET lease_until = now() + ? WHERE thread = ? AND fence = ?"
        key = thread_key(lease.thread_id)
        return self._write_one(sql, lease.ttl, key, lease.fence) > 0

    def _give_back(self, lease: SqlLease) -> None:
        key = thread_key(lease.thread_id)
        if self._leases.get(key) is lease:
            del self._leases[key]
        if lease.lost:
            return

        def work(session: Session) -> None:
            sql = "UPDATE jianmu_thread SET fence = NULL, lease_until = NULL, holder = NULL "
            if session.run(sql + "WHERE thread = ? AND fence = ?", key, lease.fence):
                session.run(
                    "DELETE FROM jianmu_thread WHERE thread = ? AND step < 0 AND fence IS NULL "
                    "AND NOT EXISTS (SELECT 1 FROM jianmu_journal WHERE thread = ?)",
                    *(key, key),
                )

        self._write(work)

    def _release_all(self) -> None:
        for lease in list(self._leases.values()):
            lease.release()

    def _right(self, lease: SqlLease | None) -> tuple[str, tuple[object, ...]]:
        """Return the condition on a thread's row under which we may write."""
        return (FREE, ()) if lease is None else ("fence = ?", (lease.fence,))

    def _holder(self, session: Session, key: bytes) -> tuple[int | None, str | None, float]:
        """Return fence, holder and the seconds left, after the thread's row is locked."""
        sql = "SELECT fence, holder, lease_until - now() FROM jianmu_thread WHERE thread = ? FOR UPDATE"
        found = cast(list[tuple[int | None, str | None, float | None]], session.rows(sql, key))
        fence, holder, seconds = found[0] if found else (None, None, None)
        return fence, holder, seconds or 0.0

    def _explain_refusal(self, session: Session, thread_id: str, key: bytes, *, create: bool = False) -> None:
        """Raise why we may not write the thread, if so; free it from a dead holder; make it if wanted."""
        lease = self._leases.get(key)
        fence, holder, seconds = self._holder(session, key)
        if lease is not None:
            if fence != lease.fence:
                raise lease.mark_lost()
            return
        if fence is not None and seconds > 0:
            if not holder_has_died(holder):
                raise busy(thread_id, holder, seconds)
            session.run("UPDATE jianmu_thread SET fence = NULL WHERE thread = ? AND fence = ?", key, fence)
        if create:
            self._ensure_thread(session, thread_id, key)

    def _ensure_thread(self, session: Session, thread_id: str, key: bytes) -> None:
        """Insert the thread's row.

        Under a lease it exists already; if it is missing the thread was deleted and must stay deleted.
        """
        if key not in self._leases:
            self._make_thread(session, thread_id, key)

    def _make_thread(self, session: Session, thread_id: str, key: bytes) -> None:
        session.run(
            "INSERT INTO jianmu_thread (thread, name, incarnation, step) VALUES (?, ?, ?, -1) "
            "ON CONFLICT (thread) DO NOTHING",
            *(key, id_bytes(thread_id), secrets.randbits(62)),
        )

    def _seize(self, session: Session, thread_id: str, key: bytes) -> int | None:
        """Lock the thread's row, check our right to it, void all known places, and return the newest step."""
        session.run("UPDATE jianmu_thread SET incarnation = ? WHERE thread = ?", secrets.randbits(62), key)
        self._explain_refusal(session, thread_id, key)
        found = session.rows("SELECT step FROM jianmu_thread WHERE thread = ?", key)
        return cast(int, found[0][0]) if found else None
