"""What can be recorded, as text; every back end turns its inputs into text here."""

from __future__ import annotations

from collections.abc import Sequence

from jianmu.errors import MemoryInputError
from jianmu.memory.long_term.base import LongTermMemoryInput, Namespace
from jianmu.messages import Message

__all__ = ["check_page", "input_text", "namespace_tuple"]


def input_text(inputs: LongTermMemoryInput) -> str:
    """Return the text to keep: a string or one message verbatim, several as ``name: text`` lines.

    Raises:
        TypeError: `inputs` is nothing that can be recorded.
        MemoryInputError: There is no text in it.
    """
    text = _text_of(inputs)
    if not text.strip():
        raise MemoryInputError("there is nothing to record: the text is empty")
    return text


def _text_of(inputs: object) -> str:
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, Message):
        return inputs.text
    if not isinstance(inputs, Sequence) or isinstance(inputs, (bytes, bytearray)):
        raise TypeError(
            f"what is recorded is a str, a Message or a sequence of them, not {type(inputs).__name__}"
        )
    lines = []
    for item in inputs:
        if not isinstance(item, Message):
            raise TypeError(f"a sequence to record holds Messages, not {type(item).__name__}")
        if item.text.strip():
            lines.append(f"{item.name or item.role}: {item.text}")
    return "\n".join(lines)


def check_page(limit: int | None, offset: int = 0) -> None:
    """Refuse bounds of a page that are no counts; a limit of None is none, of 0 nothing.

    Raises:
        MemoryInputError: With the argument's name and what was given.
    """
    for name, count in (("limit", limit), ("offset", offset)):
        if count is None and name == "limit":
            continue
        if type(count) is not int or count < 0:
            raise MemoryInputError(f"{name} must be an int of 0 or more, not {count!r}")


def namespace_tuple(namespace: Sequence[str] | None) -> Namespace:
    """Return `namespace` as a tuple of non-empty strings; None is ``()``.

    Raises:
        TypeError: It is one string, or a part is no string.
        MemoryInputError: A part is empty.
    """
    if namespace is None:
        return ()
    if isinstance(namespace, str):
        raise TypeError(f"a namespace is a tuple of strings: write ({namespace!r},)")
    for part in namespace:
        if not isinstance(part, str):
            raise TypeError(f"a part of a namespace is a str, not {type(part).__name__}")
        if not part:
            raise MemoryInputError("a part of a namespace is empty")
    return tuple(namespace)
