"""Together: instances and threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from jianmu.testing.long_term.support import FakeClock, Support

__all__ = ["Together"]


class Together(Support):
    """Together: instances and threads."""

    def test_two_instances_see_each_others_writes(
        self, memory: Any, tmp_path: Path, clock: FakeClock
    ) -> None:
        """As two processes over the same data would."""
        if not self.shareable:
            pytest.skip("not shareable")
        other = self.make(tmp_path, clock=clock)
        try:
            memory.record("tea from the first", key="a")
            assert self.contents(other.retrieve("tea")) == ["tea from the first"]
            other.record("tea from the second", key="b")
            assert len(memory.retrieve("tea")) == 2
        finally:
            self.close(other)

    def test_threads_lose_no_write(self, memory: Any) -> None:
        """Four threads, one instance."""
        errors: list[BaseException] = []

        def write(worker: int) -> None:
            try:
                for number in range(15):
                    memory.record(f"tea w{worker}n{number}", key=f"w{worker}n{number}")
                    memory.retrieve("tea", limit=1)
            except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
                errors.append(error)

        threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert errors == []
        assert len(memory.retrieve("tea", limit=100)) == 60
