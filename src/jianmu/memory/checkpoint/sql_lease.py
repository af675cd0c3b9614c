"""Leases in a row of the thread's table: a random fence, an end by the database's clock, and who holds it."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from jianmu.errors import LeaseLostError, ThreadBusyError

__all__ = ["Session", "SqlLease", "busy", "holder_has_died", "lost", "this_holder"]


class Session(Protocol):
    """One transaction. Statements use ``?``; ``now()`` is the clock that leases go by."""

    def rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        """Return what a query finds."""
        ...

    def each(self, sql: str, *values: object) -> Iterator[tuple[object, ...]]:
        """Yield what a query finds, row by row."""
        ...

    def run(self, sql: str, *values: object) -> int:
        """Return how many rows a statement changed."""
        ...


class SqlLease:
    """The hold on one thread.

    Attributes:
        thread_id: The thread.
        fence: What each write of the holder must find in the thread's row.
        ttl: Seconds that the lease lasts without `renew`.
        journal_is_empty: Whether the holder, and so the only writer, knows that the journal is empty.
    """

    def __init__(
        self,
        thread_id: str,
        ttl: float,
        extend: Callable[[SqlLease], bool],
        give_back: Callable[[SqlLease], None],
    ) -> None:
        self.thread_id = thread_id
        self.fence = secrets.randbits(62)
        self.ttl = ttl
        self.journal_is_empty = False
        self._extend = extend
        self._give_back = give_back
        self._lost = False
        self._released = False

    @property
    def lost(self) -> bool:
        """Whether a successor took over or the thread was deleted, as far as was seen."""
        return self._lost

    def renew(self) -> None:
        """Extend the lease by its ttl.

        Raises:
            LeaseLostError: Somebody else holds the thread by now, or it was deleted.
        """
        if self._lost or self._released or not self._extend(self):
            raise self.mark_lost()

    def mark_lost(self) -> LeaseLostError:
        """Note that the thread is no longer ours, and return the error to raise."""
        self._lost = True
        return lost(self.thread_id)

    def release(self) -> None:
        """Give the thread back; safe to call twice."""
        if not self._released:
            self._released = True
            self._give_back(self)

    def __enter__(self) -> SqlLease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def lost(thread_id: str) -> LeaseLostError:
    """Return the error for a holder that is none any more."""
    return LeaseLostError(
        f"thread {thread_id!r} was taken over or deleted during this run; nothing was written"
    )


def busy(thread_id: str, holder: str | None, seconds: float) -> ThreadBusyError:
    """Return the error for a thread that another holds for so many seconds yet."""
    try:
        known = json.loads(holder or "{}")
        who = f"process {known['pid']} on {known['host']}"
    except (ValueError, KeyError):
        who = "another run"
    return ThreadBusyError(
        f"thread {thread_id!r} is held by {who}, for {max(seconds, 0):.1f} s unless renewed; wait for it to "
        "end, or use another thread id"
    )


def this_holder() -> str:
    """Return who this process is, for others on the same machine to see whether it still lives."""
    pid = os.getpid()
    known = {"host": socket.gethostname(), "pid": pid, "started": _start_time(pid), **_machine()}
    return json.dumps(known)


def holder_has_died(holder: str | None) -> bool:
    """Return whether a holder is known to be dead; False where the system cannot tell."""
    try:
        known = json.loads(holder or "{}")
    except ValueError:
        return False
    if not known.get("started") or known.get("host") != socket.gethostname():
        return False
    here = _machine()
    if known.get("boot") != here["boot"]:
        return bool(here["boot"] and known.get("boot"))  # the machine was started anew since
    if known.get("pids") != here["pids"]:
        return False  # another container counts its own processes
    return _start_time(int(known["pid"])) != str(known["started"])


def _machine() -> dict[str, str]:
    return {"boot": _read("/proc/sys/kernel/random/boot_id"), "pids": _link("/proc/self/ns/pid")}


def _start_time(pid: int) -> str:
    """Return when a process started, in clock ticks since boot (proc(5), field 22); "" if it is dead."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return "" if len(fields) < 20 or fields[0] in "ZX" else fields[19]


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - the link names no file
    except OSError:
        return ""
