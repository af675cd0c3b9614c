"""A chat in a real terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

JIANMU = [sys.executable, "-m", "jianmu.cli"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start `jianmu chat` in an empty folder."""
    import pexpect

    children: list[Any] = []

    def run(*arguments: str, **environ: str) -> Any:
        keep = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        child = pexpect.spawn(
            JIANMU[0],
            [*JIANMU[1:], "chat", *arguments],
            cwd=str(tmp_path),
            env={**keep, "TERM": "dumb", "COLUMNS": "120", "PYTHONUTF8": "1", **environ},  # type: ignore[arg-type]
            encoding="utf-8",
            timeout=30,
            dimensions=(40, 120),
            echo=False,
        )
        child.delaybeforesend = None
        children.append(child)
        return child

    yield run
    for child in children:
        child.close(force=True)
