"""Tables of the SQL back ends, the same in SQLite and PostgreSQL but for the names of types.

Every key leads with the thread, and one transaction touches one thread, so that a distributed PostgreSQL can
place a thread's rows together.
"""

from __future__ import annotations

__all__ = ["MIGRATIONS", "READ_STEP", "Dialect"]

Dialect = dict[str, str]
"""How a database calls ``{bytes}``, ``{int}``, ``{real}``, ``{text}``, and the option ``{clustered}``."""

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
)
"""One tuple of statements per schema version. ``incarnation`` is drawn anew whenever steps are removed, so
that a writer that has not seen it cannot lead on from a step that is no longer what it was."""

READ_STEP = """
    SELECT t.incarnation, t.step, s.step, s.before, s.base, s.saved, s.sum, s.body
    FROM jianmu_thread t
    LEFT JOIN jianmu_step s ON s.thread = t.thread AND s.step <= ? AND s.step >= (
        SELECT b.base FROM jianmu_step b WHERE b.thread = ? AND b.step <= ? ORDER BY b.step DESC LIMIT 1
    )
    WHERE t.thread = ?
    ORDER BY s.step
"""
"""A snapshot and the deltas up to a step, in one statement."""
