"""Shortening one message to so many tokens."""

from __future__ import annotations

from typing import Literal

from jianmu.memory.context.counting import MessageCounter
from jianmu.messages import Message
from jianmu.messages.wire import plain_text

__all__ = ["clip"]

_GONE = "[…]"
# No tokenizer makes so long a token of ordinary text; it bounds how much of a huge text is looked at.
_LONGEST_TOKEN = 32


def clip(
    message: Message, limit: int, counter: MessageCounter, *, keep: Literal["start", "end", "both"]
) -> Message | None:
    """Return `message` with as much of its text as costs at most `limit` tokens, or None if nothing does.

    The note of what is gone counts; the result is never longer than the text was.

    Args:
        message: The message; ``[image]`` stands for an image.
        limit: Tokens, with the message's own overhead.
        counter: Counts.
        keep: Which end stays; of ``both``, two thirds are the start.
    """
    text = plain_text(message)
    if not isinstance(message.content, str):
        message = message.model_copy(update={"content": text})
        if counter.message(message) <= limit:
            return message
    low, high = 0, min(len(text), limit * _LONGEST_TOKEN)
    best: Message | None = None
    while low < high:
        size = (low + high + 1) // 2
        content = _part(text, size, keep)
        part = message.model_copy(update={"content": content})
        if len(content) <= len(text) and counter.message(part) <= limit:
            low, best = size, part
        else:
            high = size - 1
    return best


def _part(text: str, size: int, keep: str) -> str:
    if size == len(text):
        return text
    if keep == "start":
        return text[:size] + _GONE
    if keep == "end":
        return _GONE + text[len(text) - size :]
    tail = size // 3
    gone = len(text) - size
    return f"{text[: size - tail]}\n[… {gone:,} characters left out …]\n{text[len(text) - tail :]}"
