"""Fixtures over the real mem0: a local wire server and a memory per vector store."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .server import DIMENSIONS, Wire, serve

KEY = "sk-embedder-secret-0123456789"
LLM_KEY = "sk-model-secret-9876543210"


def pytest_configure(config: pytest.Config) -> None:
    os.environ["MEM0_TELEMETRY"] = "False"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """mem0 and its stores leave sqlite3 connections and lock files open, of which Python 3.13 warns."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


def stores() -> list[str]:
    """The vector stores that are installed here; the matrix has both."""
    return ["qdrant", *(["chroma"] if importlib.util.find_spec("chromadb") else [])]


@pytest.fixture(scope="session", autouse=True)
def mem0_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["MEM0_DIR"] = str(tmp_path_factory.mktemp("mem0-home"))


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as running:
        yield running


def local_config(wire: Wire, folder: Path, store: str) -> dict[str, Any]:
    qdrant = {
        "path": str(folder / "qdrant"),
        "collection_name": "memories",
        "embedding_model_dims": DIMENSIONS,
    }
    chroma = {"path": str(folder / "chroma"), "collection_name": "memories"}
    embedder = {
        "api_key": KEY,
        "openai_base_url": wire.url + "/v1",
        "model": "hash",
        "embedding_dims": DIMENSIONS,
    }
    return {
        "vector_store": {
            "provider": store,
            "config": {**qdrant, "on_disk": True} if store == "qdrant" else chroma,
        },
        "embedder": {"provider": "openai", "config": embedder},
        "llm": {"provider": "openai", "config": {"api_key": LLM_KEY, "openai_base_url": wire.url + "/v1"}},
        "history_db_path": str(folder / "history.db"),
    }


@pytest.fixture(params=stores())
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_memory(wire: Wire, tmp_path: Path, store: str) -> Iterator[Callable[..., Any]]:
    from jianmu.memory.long_term.mem0 import Mem0LongTermMemory

    opened: list[Mem0LongTermMemory] = []

    def make(infer: bool = False, **changes: Any) -> Mem0LongTermMemory:
        memory = Mem0LongTermMemory({**local_config(wire, tmp_path, store), **changes}, infer=infer)
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()
    gc.collect()  # what mem0 left open is warned of here, not in another test
