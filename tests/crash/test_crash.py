"""A slice of the long proof (`make crash`): real processes, real SIGKILLs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .harness import Report, crash_one_tree

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside other threads of the test runner
@pytest.mark.parametrize("backend", ["file", "sqlite"])
@pytest.mark.parametrize("seed", range(12))
def test_a_killed_run_ends_as_if_it_had_been_left_alone(seed: int, backend: str, tmp_path: Path) -> None:
    report = Report()
    crash_one_tree(seed, tmp_path, report, 4, backend)
    assert report.faults == []
    assert report.trees == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_run_over_postgres_ends_the_same_way(seed: int, postgres_dsn: str, tmp_path: Path) -> None:
    report = Report()
    crash_one_tree(seed, tmp_path, report, 4, postgres_dsn)
    assert report.faults == []
    assert report.trees == 1
