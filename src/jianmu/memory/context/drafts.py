"""What a provider gave, and how it is made to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jianmu.errors import ContextError
from jianmu.memory.context.clip import clip
from jianmu.memory.context.counting import MessageCounter
from jianmu.memory.context.marks import mark, marked
from jianmu.memory.context.providers.base import ContextProvider, Entries
from jianmu.memory.context.report import Change
from jianmu.messages import Message, Role

__all__ = ["Draft", "Fitted", "Polish", "draft_of"]

Polish = Callable[[list[Message]], list[Message]]
"""Applies the filters that see every section."""


@dataclass
class Fitted:
    """The part of a section that is in the prompt."""

    messages: list[Message] = field(default_factory=list)
    tokens: int = 0
    changes: list[Change] = field(default_factory=list)


class Draft(Protocol):
    """A section before its limit is known."""

    def fit(self, limit: int | None) -> Fitted:
        """Return what of it costs at most `limit` tokens; None is no limit."""
        ...


def draft_of(provider: ContextProvider, given: object, counter: MessageCounter, polish: Polish) -> Draft:
    """Return the draft of what a provider gave.

    Raises:
        ContextError: The provider gave something that is no content.
    """
    role: Role = "system" if provider.place == "prefix" else "user"
    metadata = mark(provider.name)
    if isinstance(given, Entries):
        return _EntriesDraft(given, Message(role=role, metadata=metadata), counter, polish)
    if given is None or given == "":
        items: Sequence[Message] = ()
    elif isinstance(given, str):
        items = (Message(role=role, content=given, metadata=metadata),)
    elif isinstance(given, Message):
        items = (marked(given, provider.name),)
    elif isinstance(given, Sequence) and all(isinstance(item, Message) for item in given):
        items = tuple(marked(item, provider.name) for item in given if isinstance(item, Message))
    else:
        raise ContextError(f"it gave a {type(given).__name__}, which is neither text, messages nor Entries")
    return _MessagesDraft(polish(list(items)), provider.cut, counter)


class _MessagesDraft:
    def __init__(self, messages: list[Message], cut: str, counter: MessageCounter) -> None:
        self._messages = messages
        self._cut = cut
        self._counter = counter

    def fit(self, limit: int | None) -> Fitted:
        tokens = self._counter.messages(self._messages)
        if limit is None or tokens <= limit:
            return Fitted(list(self._messages), tokens)
        if self._cut == "never":
            change = Change(
                "dropped", f"{tokens} tokens do not fit into {limit}", len(self._messages), tokens
            )
            return Fitted(changes=[change])
        return self._shorten(limit, tokens)

    def _shorten(self, limit: int, tokens: int) -> Fitted:
        from_end = self._cut != "start"
        fitted = Fitted()
        for message in self._messages if from_end else reversed(self._messages):
            cost = self._counter.message(message)
            if fitted.tokens + cost <= limit:
                fitted.messages.append(message)
                fitted.tokens += cost
                continue
            part = None if self._cut == "entries" else self._clip(message, limit - fitted.tokens)
            if part is not None:
                fitted.messages.append(part)
                fitted.tokens += self._counter.message(part)
            if self._cut != "entries":
                break
        if not from_end:
            fitted.messages.reverse()
        gone = len(self._messages) - len(fitted.messages)
        kind, count = ("dropped", gone) if gone else ("cut", 1)
        reason = f"{tokens} tokens do not fit into {limit}"
        fitted.changes.append(
            Change("dropped" if kind == "dropped" else "cut", reason, count, tokens - fitted.tokens)
        )
        return fitted

    def _clip(self, message: Message, limit: int) -> Message | None:
        return clip(message, limit, self._counter, keep="end" if self._cut == "start" else "start")


class _EntriesDraft:
    def __init__(self, entries: Entries, blank: Message, counter: MessageCounter, polish: Polish) -> None:
        self._entries = entries
        self._blank = blank
        self._counter = counter
        self._polish = polish

    def fit(self, limit: int | None) -> Fitted:
        items = list(self._entries.items)
        if not items:
            return Fitted()
        whole = self._made(items)
        if limit is None or whole.tokens <= limit:
            return whole
        kept: list[object] = []
        best = Fitted()
        for item in items:
            tried = self._made([*kept, item])
            if tried.tokens <= limit:
                kept.append(item)
                best = tried
        saved, gone = whole.tokens - best.tokens, len(items) - len(kept)
        best.changes.append(Change("dropped", f"{whole.tokens} tokens do not fit into {limit}", gone, saved))
        return best

    def _made(self, items: Sequence[object]) -> Fitted:
        text = self._entries.render(items)
        messages = self._polish([self._blank.model_copy(update={"content": text})])
        return Fitted(messages, self._counter.messages(messages))
