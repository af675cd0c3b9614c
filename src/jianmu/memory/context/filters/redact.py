"""A filter that hides what must not be sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jianmu.errors import ConfigError
from jianmu.memory.context.cache import IdentityCache, PrefixMemo
from jianmu.messages import Message, TextPart, ToolCall

__all__ = ["PATTERNS", "Redact"]

PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "email": r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
        "key": (
            # OpenAI, Anthropic, Stripe: long, with digits and capitals, as no ordinary word is.
            r"(?<![A-Za-z0-9_-])(?:sk|pk|rk)[-_](?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{20,}"
            r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS
            r"|\bAIza[A-Za-z0-9_-]{35}"  # Google
            r"|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,}"  # GitHub
            r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"  # Slack
            r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JSON Web Token
            r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
        ),
    }
)
"""Built-in patterns by name."""


# Shorter lists are other providers' sections, which must not displace what is known of the history.
_SHORT = 32


class Redact:
    """Replaces what matches a pattern by ``[redacted:NAME]``, in text and in arguments of calls, everywhere.

    Thinking blocks that are sent back to Anthropic are left as they are: the provider signed them.

    Args:
        names: Built-in patterns to use (see `PATTERNS`); all of them by default.
        patterns: More regular expressions, by the name that stands in for their matches.

    Raises:
        ConfigError: A name is unknown, or a pattern is no regular expression.
    """

    everywhere = True

    def __init__(self, *names: str, patterns: Mapping[str, str] | None = None) -> None:
        unknown = [name for name in names if name not in PATTERNS]
        if unknown:
            raise ConfigError(f"no built-in pattern {', '.join(unknown)}; there are {', '.join(PATTERNS)}")
        chosen = {name: PATTERNS[name] for name in names or PATTERNS} | dict(patterns or {})
        try:
            self._patterns = [(f"[redacted:{name}]", re.compile(text)) for name, text in chosen.items()]
        except re.error as error:
            raise ConfigError(f"pattern {error.pattern!r} is no regular expression: {error}") from error
        # None stands for "nothing to hide"; keeping the message itself would keep it alive.
        self._known: IdentityCache[Message | None] = IdentityCache()
        self._history = PrefixMemo(self._message)

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages without what matches; those with nothing to hide are the same objects."""
        if len(messages) < _SHORT:
            return [self._message(message) for message in messages]
        return self._history.of(messages)

    def _message(self, message: Message) -> Message:
        if message not in self._known:
            self._known.set(message, self._clean(message))
        return self._known.get(message) or message

    def _clean(self, message: Message) -> Message | None:
        content: Any = message.content
        if isinstance(content, str):
            content = self._value(content)
        else:
            content = tuple(
                part.model_copy(update={"text": self._value(part.text)})
                if isinstance(part, TextPart)
                else part
                for part in content
            )
        calls = tuple(self._call(call) for call in message.tool_calls)
        if content == message.content and calls == message.tool_calls:
            return None
        return message.model_copy(update={"content": content, "tool_calls": calls})

    def _call(self, call: ToolCall) -> ToolCall:
        return call.model_copy(update={"arguments": self._value(call.arguments)})

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            for stand_in, pattern in self._patterns:
                value = pattern.sub(stand_in, value)
            return value
        if isinstance(value, Mapping):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)([self._value(item) for item in value])
        return value
