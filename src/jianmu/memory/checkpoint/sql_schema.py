"""Tables of the SQL back ends, the same in SQLite and PostgreSQL but for the names of types.

Every key leads with the thread, and one transaction touches one thread, so that a distributed PostgreSQL can
place a thread's rows together.
"""

from __future__ import annotations

import hashlib

__all__ = ["MIGRATIONS", "READ_STEP", "id_bytes", "read_step", "thread_key"]

_LONGEST_KEY = 128

# {bytes}, {int}, {real}, {text} and the option {clustered} are named by each database in its own way.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE jianmu_thread (
            thread {bytes} NOT NULL PRIMARY KEY,
            name {bytes} NOT NULL,
            incarnation {int} NOT NULL,
            step {int} NOT NULL,
            fence {int},
            lease_until {real},
            holder {text}
        ) {clustered}
        """,
        """
        CREATE TABLE jianmu_step (
            thread {bytes} NOT NULL,
            step {int} NOT NULL,
            before {int} NOT NULL,
            base {int} NOT NULL,
            saved {real} NOT NULL,
            sum {int} NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (thread, step)
        ) {clustered}
        """,
        """
        CREATE TABLE jianmu_journal (
            thread {bytes} NOT NULL,
            place {int} NOT NULL,
            sum {int} NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (thread, place)
        ) {clustered}
        """,
    ),
    (
        """
        CREATE TABLE jianmu_part (
            thread {bytes} NOT NULL,
            step {int} NOT NULL,
            part {int} NOT NULL,
            before {int} NOT NULL,
            sum {int} NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (thread, step, part)
        ) {clustered}
        """,
    ),
    (),  # where the tables were clustered, their back end takes that back
)
"""One tuple of statements per schema version. ``incarnation`` is drawn anew whenever steps are removed, so
that a writer that has not seen it cannot lead on from a step that is no longer what it was."""

READ_STEP = """
    WITH head AS (
        SELECT base, step FROM jianmu_step WHERE thread = ? AND step <= ? ORDER BY step DESC LIMIT 1
    )
    SELECT t.incarnation, t.step, 0, 0.0, 0, NULL, 0 FROM jianmu_thread t WHERE t.thread = ?
    UNION ALL
    SELECT s.step, s.before, s.base, s.saved, s.sum, s.body, 0
    FROM head h JOIN jianmu_step s ON s.thread = ? AND s.step = h.base
    UNION ALL
    SELECT p.step, p.before, h.base, 0.0, p.sum, p.body, p.part
    FROM head h JOIN jianmu_part p ON p.thread = ? AND p.step >= h.base AND p.step <= h.step
    WHERE p.part > 0 OR p.step <= ?
    UNION ALL
    SELECT s.step, s.before, s.base, s.saved, s.sum, s.body, 0
    FROM head h JOIN jianmu_step s ON s.thread = ? AND s.step <= h.step AND s.step > coalesce((
        SELECT max(p.step) FROM jianmu_part p
        WHERE p.thread = ? AND p.step >= h.base AND p.step <= h.step AND p.step <= ? AND p.part < 0
    ), h.base)
"""
"""Where a thread stands (a row without a body), and the rows that lead to a step, in one statement: the
snapshot, its parts, the bundles after it, and the steps after those. Its values: see `read_step`."""


def read_step(key: bytes, step: int, *, bundles: bool = True) -> tuple[object, ...]:
    """Return the values for `READ_STEP`; without bundles it finds each step by itself."""
    most = step if bundles else -1
    return key, step, key, key, key, most, key, key, most


def id_bytes(thread_id: str) -> bytes:
    """Return a thread id as bytes; any two ids differ, also with half a surrogate pair in them."""
    return thread_id.encode("utf-8", "surrogatepass")


def thread_key(thread_id: str) -> bytes:
    """Return the key of a thread: its id, or for a long one its beginning and its BLAKE2b-256 hash.

    An index of PostgreSQL takes keys of up to 2,700 bytes. Short keys are under 128 bytes and long ones are
    exactly that, so no id can pose as another.
    """
    data = id_bytes(thread_id)
    if len(data) < _LONGEST_KEY:
        return data
    return data[: _LONGEST_KEY - 32] + hashlib.blake2b(data, digest_size=32).digest()
