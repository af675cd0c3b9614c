"""Who in this process and outside may write which thread's files just now."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from jianmu.memory.checkpoint.file_lease import PATIENCE, FileLease, busy, take_lease
from jianmu.memory.checkpoint.thread_file import ThreadFile
from jianmu.storage.atomic import make_private_folder
from jianmu.storage.locks import hold

__all__ = ["WriteRights"]


class _Guard:
    """Lets one thread of this process at a time work on one conversation."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


class WriteRights:
    """The leases of one `FileCheckpointer`, and the right to write for the time of one call.

    Args:
        root: The checkpointer's folder; made before a lock is taken.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._master = threading.Lock()
        self._guards: weakref.WeakValueDictionary[str, _Guard] = weakref.WeakValueDictionary()
        self._leases: dict[str, FileLease] = {}
        self._written_now: set[str] = set()

    def acquire(self, files: ThreadFile) -> FileLease:
        """Take a thread until its lease is released.

        Raises:
            ThreadBusyError: Another run holds it, here or elsewhere.
        """
        thread_id = files.thread_id
        with self._guard(thread_id):
            if thread_id in self._leases:
                raise busy(thread_id)
            make_private_folder(self._root)
            lock = take_lease(thread_id, files.gate, files.lease)
            lease = FileLease(thread_id, lock, files.log.identify, self._forget)
            self._leases[thread_id] = lease
            return lease

    def holds(self, thread_id: str) -> bool:
        """Whether this object is the one that may write."""
        return thread_id in self._leases or thread_id in self._written_now

    @contextlib.contextmanager
    def writing(self, files: ThreadFile) -> Iterator[FileLease | None]:
        """Have the right to write for a block: by the lease that we hold, or, as None, for the block alone.

        Raises:
            ThreadBusyError: Another run holds the thread.
            LeaseLostError: We held it, and it was deleted or replaced.
        """
        thread_id = files.thread_id
        with self._guard(thread_id):
            lease = self._leases.get(thread_id)
            if lease is not None:
                lease.renew()
                yield lease
                return
            make_private_folder(self._root)
            with self._gate(files), hold(files.lease, 0.0) as taken:
                if not taken:
                    raise busy(thread_id)
                self._written_now.add(thread_id)
                try:
                    yield None
                finally:
                    self._written_now.discard(thread_id)

    @contextlib.contextmanager
    def replacing(self, files: ThreadFile, lease: FileLease | None) -> Iterator[None]:
        """Within `writing`, keep deletions out for a block that makes or replaces a file.

        Raises:
            LeaseLostError: The thread was deleted before.
        """
        if lease is None:  # `writing` holds the gate
            yield
            return
        with self._gate(files):
            lease.renew()
            yield

    @contextlib.contextmanager
    def deleting(self, files: ThreadFile) -> Iterator[None]:
        """Keep all other writers of this object, and all makers of files, out for a block."""
        with self._guard(files.thread_id), self._gate(files):
            yield

    def is_idle(self, files: ThreadFile) -> bool:
        """Whether nobody may write the thread just now."""
        with hold(files.gate, 0.0) as passed:
            if (
                not passed
            ):  # and then the lease is not touched: whoever holds the gate may be about to take it
                return False
            with hold(files.lease, 0.0) as taken:
                return taken

    def close(self) -> None:
        """Give back every lease."""
        for lease in list(self._leases.values()):
            lease.release()

    @contextlib.contextmanager
    def _gate(self, files: ThreadFile) -> Iterator[None]:
        with hold(files.gate, PATIENCE) as passed:
            if not passed:
                raise busy(files.thread_id)
            yield

    @contextlib.contextmanager
    def _guard(self, thread_id: str) -> Iterator[None]:
        with self._master:
            guard = self._guards.get(thread_id)
            if guard is None:
                guard = self._guards[thread_id] = _Guard()
        with guard.lock:
            yield

    def _forget(self, lease: FileLease) -> None:
        if self._leases.get(lease.thread_id) is lease:
            del self._leases[lease.thread_id]
