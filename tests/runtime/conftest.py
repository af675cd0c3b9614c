"""Every kind of back end that a runner may be given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.memory.checkpoint.file import FileCheckpointer
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from tests.support.checkpointers import AsyncCheckpointer, TwoMethods


@pytest.fixture(params=["file", "memory", "two methods", "async"])
def checkpointer(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "file":
        return FileCheckpointer(tmp_path)
    return {"memory": InMemoryCheckpointer, "two methods": TwoMethods, "async": AsyncCheckpointer}[
        request.param
    ]()
