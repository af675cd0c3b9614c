"""The methods of mem0 that we call, in one form for every supported version, local and hosted.

mem0 renamed its arguments between 1.x and 2.x and ignores some that it no longer knows, so each form is
chosen by the installed signature. The hosted client takes ``filters`` and ``top_k`` in every version.
"""

from __future__ import annotations

import inspect
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from jianmu.errors import ConfigError, MissingExtraError

__all__ = ["HostedCalls", "LocalCalls", "Mem0Calls", "open_hosted", "open_local"]

_LOCAL_PAGE = 10_000
_HOSTED_PAGE = 100


class Mem0Calls(Protocol):
    """What the adapter needs; ids and rows are mem0's own."""

    def add(self, text: str, user_id: str, metadata: dict[str, Any], infer: bool) -> Any:
        """Add one text; mem0's answer as it is."""
        ...

    def search(self, query: str, user_id: str, limit: int, options: Mapping[str, Any]) -> Any:
        """Search one user; mem0's answer as it is."""
        ...

    def page(self, user_id: str, filters: Mapping[str, Any], number: int) -> Any:
        """List one page of a user's memories, numbered from 1."""
        ...

    def get(self, memory_id: str) -> Any:
        """Return a row, or None."""
        ...

    def replace(self, memory_id: str, text: str, metadata: dict[str, Any]) -> None:
        """Replace text and metadata of a row."""
        ...

    def delete(self, memory_id: str) -> None:
        """Delete a row."""
        ...

    def history(self, memory_id: str) -> Any:
        """Return the changes of a row."""
        ...

    def purge(self, memory_ids: list[str], user_id: str | None) -> None:
        """Remove what mem0 keeps beside the rows: change history, and the user's raw messages."""
        ...

    def close(self) -> None:
        """Free files and connections."""
        ...


def _import_mem0() -> Any:
    os.environ.setdefault("MEM0_TELEMETRY", "False")  # read once, when mem0 is imported
    try:
        import mem0
    except ImportError as error:
        raise MissingExtraError("Mem0LongTermMemory", "mem0") from error
    return mem0


def open_local(config: Mapping[str, Any] | None) -> LocalCalls:
    """Build mem0's local client; a config is passed as given, after a check for names that mem0 would ignore.

    Without a config, mem0's defaults hold but for the place: files go below ``.outputs/jianmu/mem0`` instead
    of a folder under the system's temporary one that everybody on the host shares.
    """
    mem0 = _import_mem0()
    chosen = _default_config() if config is None else dict(config)
    fields = _config_fields()
    unknown = sorted(set(chosen) - fields) if fields else []
    if unknown:
        raise ConfigError(
            f"mem0 config {unknown} is unknown and would be ignored; it may be {sorted(fields)}"
        )
    return LocalCalls(mem0.Memory.from_config(chosen))


def _default_config() -> dict[str, Any]:
    folder = Path(".outputs/jianmu/mem0")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = {"path": str(folder / "qdrant"), "on_disk": True}
    return {
        "vector_store": {"provider": "qdrant", "config": store},
        "history_db_path": str(folder / "history.db"),
    }


def _config_fields() -> set[str]:
    try:
        from mem0.configs.base import MemoryConfig
    except ImportError:
        return set()
    return set(MemoryConfig.model_fields)


def open_hosted(api_key: str, config: Mapping[str, Any] | None) -> HostedCalls:
    """Build mem0's hosted client; `config` may hold its other arguments (host, org_id, project_id)."""
    return HostedCalls(_import_mem0().MemoryClient(api_key=api_key, **dict(config or {})))


def _parameters(method: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):
        return {}


class LocalCalls:
    """`mem0.Memory` of any version from 1.0.8 to 2.x."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._search = _parameters(client.search)
        self._list = _parameters(client.get_all)
        self._update = _parameters(client.update)
        _rank_by_similarity(client)

    def add(self, text: str, user_id: str, metadata: dict[str, Any], infer: bool) -> Any:
        """Add one text; mem0's answer as it is."""
        return self.client.add(text, user_id=user_id, metadata=metadata, infer=infer)

    def search(self, query: str, user_id: str, limit: int, options: Mapping[str, Any]) -> Any:
        """Search one user; no score threshold unless `options` name one (2.x would hide rows under 0.1)."""
        arguments = self._scoped(self._search, user_id, {}, limit)
        threshold = self._search.get("threshold")
        if threshold is not None and threshold.default is not None:
            arguments["threshold"] = 0.0
        return self.client.search(query, **{**arguments, **options})

    def page(self, user_id: str, filters: Mapping[str, Any], number: int) -> Any:
        """List rows; local stores have no pages, so page 1 is all that one call gives."""
        if number > 1:
            return []
        return self.client.get_all(**self._scoped(self._list, user_id, filters, _LOCAL_PAGE))

    @staticmethod
    def _scoped(
        parameters: Mapping[str, Any], user_id: str, filters: Mapping[str, Any], limit: int
    ) -> dict[str, Any]:
        size = "limit" if "limit" in parameters and "top_k" not in parameters else "top_k"
        if "user_id" in parameters:
            return {"user_id": user_id, size: limit, **({"filters": dict(filters)} if filters else {})}
        return {"filters": {"user_id": user_id, **filters}, size: limit}

    def get(self, memory_id: str) -> Any:
        """Return a row, or None."""
        try:
            return self.client.get(memory_id)
        except IndexError:  # chroma under older versions, when there is no such row
            return None

    def replace(self, memory_id: str, text: str, metadata: dict[str, Any]) -> None:
        """Replace text and metadata; metadata is always passed, since some versions drop it otherwise."""
        name = "text" if "text" in self._update else "data"
        self.client.update(memory_id, **{name: text}, metadata=metadata)

    def delete(self, memory_id: str) -> None:
        """Delete a row."""
        self.client.delete(memory_id)

    def history(self, memory_id: str) -> Any:
        """Return the changes of a row, oldest first."""
        return self.client.history(memory_id)

    def purge(self, memory_ids: list[str], user_id: str | None) -> None:
        """Delete history rows and, for a user, the raw messages, and overwrite them in the file."""
        database = getattr(self.client, "db", None)
        connection = getattr(database, "connection", None)
        if connection is None:
            return
        with getattr(database, "_lock", threading.Lock()):
            connection.execute("PRAGMA secure_delete = ON")
            with connection:
                connection.executemany(
                    "DELETE FROM history WHERE memory_id = ?", [(memory_id,) for memory_id in memory_ids]
                )
                if user_id is not None and _has_messages(connection):
                    connection.execute(
                        "DELETE FROM messages WHERE session_scope = ?", (_session_scope(user_id),)
                    )
            connection.execute("VACUUM")

    def close(self) -> None:
        """Close mem0's history and the vector store, so that its folder can be opened again."""
        for holder in _stores(self.client):
            close = getattr(holder, "close", None)
            if callable(close):
                close()


def _rank_by_similarity(client: Any) -> None:
    """Turn the distances of some stores into similarities, ``1 / (1 + distance)``.

    Before 2.0.5 mem0 took chroma's and faiss' distances for similarities, and from 2.0.0 sorted by them: the
    worst hit came first.
    """
    installed = re.match(r"(\d+)\.(\d+)\.(\d+)", version("mem0ai"))
    store: Any = getattr(client, "vector_store", None)
    euclidean = getattr(store, "distance_strategy", "euclidean") == "euclidean"
    if installed is None or tuple(map(int, installed.groups())) >= (2, 0, 5) or not euclidean:
        return
    if type(store).__name__ in ("ChromaDB", "FAISS"):
        search = store.search

        def search_by_similarity(*args: Any, **kwargs: Any) -> Any:
            found = search(*args, **kwargs)
            for hit in found:
                hit.score = None if hit.score is None else 1.0 / (1.0 + max(hit.score, 0.0))
            return found

        store.search = search_by_similarity


def _has_messages(connection: Any) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'messages'")
    return found.fetchone() is not None


def _session_scope(user_id: str) -> str:
    try:
        from mem0.memory.main import _build_session_scope
    except ImportError:
        return f"user_id={user_id}"
    return str(_build_session_scope({"user_id": user_id}))


def _stores(client: Any) -> Iterator[Any]:
    """The vector stores' own clients first, then mem0 itself."""
    for name in ("vector_store", "_entity_store", "entity_store"):
        store = client.__dict__.get(name)
        yield getattr(store, "client", None)
    yield client if hasattr(client, "close") else getattr(client, "db", None)


class HostedCalls:
    """`mem0.MemoryClient` of any version: ``filters`` and ``top_k`` are accepted by all of them."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def add(self, text: str, user_id: str, metadata: dict[str, Any], infer: bool) -> Any:
        """Add one text; mem0's answer as it is."""
        return self.client.add(text, user_id=user_id, metadata=metadata, infer=infer)

    def search(self, query: str, user_id: str, limit: int, options: Mapping[str, Any]) -> Any:
        """Search one user."""
        return self.client.search(query, filters={"user_id": user_id}, top_k=limit, **options)

    def page(self, user_id: str, filters: Mapping[str, Any], number: int) -> Any:
        """List one page of a user's memories, numbered from 1; the service filters by user alone."""
        return self.client.get_all(filters={"user_id": user_id}, page=number, page_size=_HOSTED_PAGE)

    def get(self, memory_id: str) -> Any:
        """Return a row, or None."""
        try:
            return self.client.get(memory_id)
        except (
            Exception
        ) as error:  # only mem0's own "not found" is an answer; its class moved between versions
            if type(error).__name__ == "MemoryNotFoundError":
                return None
            raise

    def replace(self, memory_id: str, text: str, metadata: dict[str, Any]) -> None:
        """Replace text and metadata of a row."""
        self.client.update(memory_id, text=text, metadata=metadata)

    def delete(self, memory_id: str) -> None:
        """Delete a row."""
        self.client.delete(memory_id)

    def history(self, memory_id: str) -> Any:
        """Return the changes of a row."""
        return self.client.history(memory_id)

    def purge(self, memory_ids: list[str], user_id: str | None) -> None:
        """The service keeps its own history; nothing to remove here."""

    def close(self) -> None:
        """Close the connection."""
        close = getattr(getattr(self.client, "client", None), "close", None)
        if callable(close):
            close()
