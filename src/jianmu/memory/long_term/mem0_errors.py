"""What mem0 and its stores raise, as one error of ours: with a next step, without a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jianmu.errors import LongTermMemoryError

__all__ = ["clean_error", "secret_values"]

_SECRET_NAME = re.compile(r"key|token|secret|password|credential|dsn|connection_string", re.IGNORECASE)
_SHORTEST_SECRET = 6

_NEXT_STEPS = (
    (
        ("already accessed", "AlreadyLocked"),
        "the folder is open elsewhere: share one object or close() the other",
    ),
    (
        ("api_key", "API Key", "Missing credentials"),
        "pass a key in the config (any text for a local model server)",
    ),
    (("Connect", "Connection"), "check that the host is reachable"),
)


def clean_error(doing: str, error: Exception, secrets: list[str], client: Any) -> LongTermMemoryError:
    """Return our error for one of mem0's; the original is not chained, as it may quote a key."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for secret in secrets:
        text = text.replace(secret, "***")
    steps = [step for signs, step in _NEXT_STEPS if any(sign in text for sign in signs)]
    return LongTermMemoryError(
        "; ".join([f"mem0 could not {doing}: {text}", *steps[:1], *_dimensions(client)])
    )


def _dimensions(client: Any) -> list[str]:
    """Say when embedder and store disagree in size, which the stores report in ten unclear ways."""
    try:
        wanted = client.config.vector_store.config.embedding_model_dims
        given = len(client.embedding_model.embed("probe", "search"))
    except Exception:  # noqa: BLE001 - a diagnosis must not hide the error it explains
        return []
    if wanted is None or wanted == given:
        return []
    return [f"the embedder gives {given} dimensions, the vector store expects embedding_model_dims={wanted}"]


def secret_values(config: Mapping[str, Any] | None, api_key: str | None) -> list[str]:
    """Return what must never be shown: values under telling names in the config and the environment."""
    found = [api_key or "", *_walk(config)]
    found.extend(value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    return sorted({value for value in found if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True)


def _walk(node: Any, name: str = "") -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _walk(value, str(key))
    elif isinstance(node, str) and _SECRET_NAME.search(name):
        yield node
