"""FileCheckpointer passes the contract, flushed to the disk or to the system."""

from pathlib import Path

import pytest

from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.names import file_stem
from jianmu.testing import CheckpointerContract, CheckpointerEndurance
from jianmu.testing.checkpointer_contract import Clock


class FileSuite(CheckpointerContract):
    """Knows where a record is, so that damage can be tried; its subclasses are the tests."""

    exposes_records = True

    def read_record(self, home: Path, thread_id: str, step: int) -> bytes:
        return self.lines(home, thread_id)[step - 1]

    def write_record(self, home: Path, thread_id: str, step: int, data: bytes) -> None:
        lines = self.lines(home, thread_id)
        lines[step - 1] = data
        self.path(home, thread_id).write_bytes(b"".join(lines))

    def path(self, home: Path, thread_id: str) -> Path:
        return home / f"{file_stem(thread_id)}.jsonl"

    def lines(self, home: Path, thread_id: str) -> list[bytes]:
        if not hasattr(self, "whole"):
            self.whole = self.path(home, thread_id).read_bytes().splitlines(keepends=True)
        return list(self.whole)


class TestFileCheckpointer(FileSuite):
    def make(self, home: Path) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush")

    def make_with_clock(self, home: Path, clock: Clock) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush", clock=clock)


class TestDurableFileCheckpointer(CheckpointerContract):
    many_saves = 20

    def make(self, home: Path) -> FileCheckpointer:
        return FileCheckpointer(home)


class TestFileCheckpointerAtLength(CheckpointerEndurance):
    big_state = 5_000_000
    many_steps = 1_000

    def make(self, home: Path) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush")


@pytest.mark.slow
class TestFileCheckpointerAtFullLength(CheckpointerEndurance):
    def make(self, home: Path) -> FileCheckpointer:
        return FileCheckpointer(home, durability="flush")
