"""A filter that reduces old tool output to a stub."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count

from jianmu.errors import ConfigError
from jianmu.memory.context.cache import IdentityCache, PrefixMemo
from jianmu.memory.context.marks import kind_of, marked
from jianmu.messages import Message
from jianmu.messages.wire import plain_text

__all__ = ["StubToolOutput"]


class StubToolOutput:
    """Keeps the newest results whole and replaces the text of older, longer ones by a note of their size.

    It moves on by `keep` results at once, so that the history's beginning stays the same for some turns.

    Args:
        keep: How many of the newest results stay whole at least.
        longer_than: Results of up to so many characters stay whole.

    Raises:
        ConfigError: A number is negative.
    """

    def __init__(self, keep: int = 4, *, longer_than: int = 200) -> None:
        if keep < 0 or longer_than < 0:
            raise ConfigError(f"keep={keep} and longer_than={longer_than} must not be negative")
        self._keep = keep
        self._longer_than = longer_than
        self._long = PrefixMemo(self._is_long)
        self._stubs: IdentityCache[Message] = IdentityCache()

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages with old output stubbed."""
        long = list(compress(count(), self._long.of(messages)))
        step = max(1, self._keep)
        old = max(0, (len(long) - self._keep) // step * step)
        if not old:
            return messages
        result = list(messages)
        for index in long[:old]:
            message = messages[index]
            result[index] = self._stubs.get(message) or self._stubs.set(message, self._stub(message))
        return result

    def _is_long(self, message: Message) -> bool:
        return (
            message.role == "tool"
            and len(plain_text(message)) > self._longer_than
            and kind_of(message) != "stub"
        )

    def _stub(self, message: Message) -> Message:
        size = len(plain_text(message))
        return marked(message, "stub", content=f"[output of {size:,} characters left out]")
