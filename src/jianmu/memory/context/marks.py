"""How a built message tells where it came from, so that building from it again gives it again."""

from __future__ import annotations

from typing import Any

from jianmu.messages import Message

__all__ = ["is_generated", "is_pinned", "kind_of", "mark", "marked"]

_KEY = "jianmu.context"
_KEPT = frozenset({"interrupted", "summary", "stub", "shortened", "redacted"})


def mark(kind: str) -> dict[str, Any]:
    """Return the metadata of a message that the builder made.

    The name of a section means: leave this out when the history is read, a provider makes it again. The other
    kinds (interrupted, summary, stub, shortened, redacted) belong to the history.
    """
    return {_KEY: kind}


def marked(message: Message, kind: str, **changes: Any) -> Message:
    """Return a copy of `message` with changes, marked as `kind`."""
    metadata = {**message.metadata, _KEY: kind}
    return message.model_copy(update={**changes, "metadata": metadata})


def kind_of(message: Message) -> str | None:
    """Return what the builder marked the message as, or None."""
    return message.metadata.get(_KEY) if message.metadata else None


def is_generated(message: Message) -> bool:
    """Tell whether a provider made this message, so that it is no part of the history."""
    kind = kind_of(message)
    return kind is not None and kind not in _KEPT


def is_pinned(message: Message) -> bool:
    """Tell whether a message at the head stays whatever the budget: a system prompt or a summary."""
    return message.role == "system" or kind_of(message) == "summary"
