"""Anthropic's prompt cache, as its documentation describes it.

Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from jianmu.testing.provider_wire import WireError

__all__ = ["PromptCache"]

_MARKS = 4
_LOOK_BACK = 20
_LETTERS_A_TOKEN = 4


class PromptCache:
    """Remembers marked prefixes: at most four marks, looked up to 20 blocks back, no least length.

    Tokens are counted as four letters of JSON each.
    """

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self._lock = threading.Lock()

    def use(self, body: dict[str, Any]) -> tuple[int, int]:
        """Return the tokens that one request reads from the cache and writes to it.

        Raises:
            WireError: Marks that the API refuses.
        """
        prefixes = list(_prefixes(body))
        marks = [at for at, (_, _, marked) in enumerate(prefixes) if marked]
        if len(marks) > _MARKS:
            raise WireError(
                f"A maximum of {_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
            )
        if not marks:
            return 0, 0
        with self._lock:
            read = next((prefixes[at][1] for at in _looked_up(marks) if prefixes[at][0] in self._kept), 0)
            self._kept.update(prefixes[at][0] for at in marks)
        return read, max(0, prefixes[marks[-1]][1] - read)


def _looked_up(marks: list[int]) -> Iterator[int]:
    for mark in reversed(marks):
        yield from range(mark, max(-1, mark - _LOOK_BACK), -1)


def _prefixes(body: dict[str, Any]) -> Iterator[tuple[str, int, bool]]:
    """Yield digest, tokens and mark of the prefix that ends at each block: tools, system, messages."""
    digest, letters = hashlib.sha256(), 0
    for place, block in _blocks(body):
        mark = block.get("cache_control")
        if mark is not None and (mark.get("type") != "ephemeral" or block.get("type") == "thinking"):
            raise WireError(f"cache_control: {mark} is not allowed at a block of type {block.get('type')}")
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        text = json.dumps([place, plain], sort_keys=True)
        digest.update(text.encode())
        letters += len(text)
        yield digest.hexdigest(), letters // _LETTERS_A_TOKEN, mark is not None


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in body.get("tools") or []:
        yield "tools", tool
    yield from (("system", block) for block in _listed(body.get("system") or []))
    for message in body["messages"]:
        yield from ((message["role"], block) for block in _listed(message["content"]))


def _listed(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
