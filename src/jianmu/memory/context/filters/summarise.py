"""A filter that replaces the beginning of a long history by a summary that you have made."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import accumulate

from jianmu.errors import ConfigError
from jianmu.memory.context.filters.base import newest_user
from jianmu.memory.context.marks import kind_of, mark
from jianmu.memory.context.request import ContextRequest, field_of
from jianmu.messages import Message

__all__ = ["Summarise"]


class Summarise:
    """Has the beginning of a history summarised once it is long, and keeps the summary in the state.

    The summary is made again only when so much was added that what is not summarised is too long again; it
    is then given the summary before. So each message is paid for once. The summary comes back in
    ``BuiltContext.updates``, to be written to the state's field; if `build` is given a StateManager, the
    builder writes it.

    Args:
        summarise: Called with the summary before, or None, and the messages to add to it; returns the new
            summary. It may be a coroutine function; then use `ContextBuilder.abuild`.
        over: Summarise when what is not summarised costs more than this many tokens.
        keep: What is left unsummarised then, in tokens at most; half of `over` by default.
        field: The state's field for the summary: a ``dict | None``.

    Raises:
        ConfigError: `keep` is not below `over`.
    """

    def __init__(
        self,
        summarise: Callable[[str | None, Sequence[Message]], str | Awaitable[str]],
        *,
        over: int,
        keep: int | None = None,
        field: str = "summary",
    ) -> None:
        self._keep = over // 2 if keep is None else keep
        if not 0 <= self._keep < over:
            raise ConfigError(f"keep={self._keep} must lie in [0, over={over})")
        self._summarise = summarise
        self._over = over
        self._field = field

    def apply(self, messages: Sequence[Message], request: ContextRequest) -> Sequence[Message]:
        """Return the history with its beginning summarised, if it was or is too long."""
        head = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
        text, start = self._before(messages, head, request)
        count = start + self._too_much(messages[start:], request)
        if count > start:
            text = str(request.resolve(self._summarise(text, messages[start:count])))
            request.updates[self._field] = {
                "text": text,
                "count": count - head,
                "last": _fingerprint(messages[count - 1]),
            }
        if text is None:
            return messages
        content = f"Summary of the conversation so far:\n{text}"
        summary = Message(role="user", content=content, metadata=mark("summary") | {"summary": text})
        return [*messages[:head], summary, *messages[count:]]

    def _before(
        self, messages: Sequence[Message], head: int, request: ContextRequest
    ) -> tuple[str | None, int]:
        """Return the summary so far and the index of the first message that it does not cover."""
        if head < len(messages) and kind_of(messages[head]) == "summary":
            return messages[head].metadata.get("summary", messages[head].text), head + 1
        view = request.state
        saved = None if isinstance(view, Sequence) else field_of(view, self._field)
        if not isinstance(saved, Mapping):
            return None, head
        end = head + saved["count"]
        if end > len(messages) or _fingerprint(messages[end - 1]) != saved["last"]:
            # The history was cut or rewritten: what the summary covers is no longer known.
            return None, head
        return saved["text"], end

    def _too_much(self, messages: Sequence[Message], request: ContextRequest) -> int:
        """Return how many messages to summarise now, in whole turns if possible."""
        before = [0, *accumulate(map(request.counter.message, messages))]
        if before[-1] <= self._over:
            return 0
        last = newest_user(messages)
        end = len(messages) if last is None else last
        starts = [i for i in range(1, end + 1) if i == len(messages) or messages[i].role != "tool"]
        fitting = [i for i in starts if before[-1] - before[i] <= self._keep] or starts[-1:]
        turns = [i for i in fitting if i < len(messages) and messages[i].role == "user"]
        return next(iter(turns or fitting), 0)


def _fingerprint(message: Message) -> str:
    return hashlib.sha256(message.model_dump_json(exclude={"metadata"}).encode()).hexdigest()[:16]
