"""Filters that choose messages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jianmu.errors import ConfigError
from jianmu.memory.context.filters.base import Filter, newest_user
from jianmu.memory.context.marks import is_pinned
from jianmu.messages import Message, Role

__all__ = ["by_role", "dedupe", "drop_empty", "window"]


def by_role(*roles: Role) -> Filter:
    """Return a filter that keeps these roles, the system's messages at the head and the newest of the user.

    Without ``tool`` the calls go too: a call and its results are one.
    """

    def keep_roles(messages: Sequence[Message]) -> Sequence[Message]:
        kept = _always_kept(messages)
        return [m for i, m in enumerate(messages) if m.role in roles or i in kept]

    return keep_roles


def window(messages: int) -> Filter:
    """Return a filter that keeps at most the newest `messages` messages.

    It drops a quarter of the window at once, so that the history's beginning stays the same for some turns.
    The system's messages at the head and the user's newest message stay and do not count.

    Raises:
        ConfigError: The window is negative.
    """
    if messages < 0:
        raise ConfigError(f"window({messages}) must not be negative")
    step = max(1, messages // 4)

    def keep_newest(history: Sequence[Message]) -> Sequence[Message]:
        kept = _always_kept(history)
        rest = [i for i in range(len(history)) if i not in kept]
        over = len(rest) - messages
        if over <= 0:
            return history
        gone = set(rest[: math.ceil(over / step) * step])
        return [m for i, m in enumerate(history) if i not in gone]

    return keep_newest


def dedupe(messages: Sequence[Message]) -> Sequence[Message]:
    """Drop messages that come again: the same `id` later on, or the same role, name and content right after.

    The later one stays. Calls and results are left alone.
    """
    later_ids: set[str] = set()
    kept: list[Message] = []
    for message in reversed(messages):
        plain = message.role != "tool" and not message.tool_calls
        if plain and (message.id in later_ids or (kept and _same(message, kept[-1]))):
            continue
        if plain and message.id is not None:
            later_ids.add(message.id)
        kept.append(message)
    return kept[::-1]


def drop_empty(messages: Sequence[Message]) -> Sequence[Message]:
    """Drop messages that say nothing: no text but white space, no image, no call; results stay."""
    return [
        m
        for m in messages
        if m.role == "tool" or m.tool_calls or not isinstance(m.content, str) or m.text.strip()
    ]


def _same(one: Message, other: Message) -> bool:
    return (
        not other.tool_calls
        and one.role == other.role
        and one.content == other.content
        and one.name == other.name
    )


def _always_kept(messages: Sequence[Message]) -> set[int]:
    head = next((i for i, m in enumerate(messages) if not is_pinned(m)), len(messages))
    newest = newest_user(messages)
    return {*range(head), *(() if newest is None else (newest,))}
