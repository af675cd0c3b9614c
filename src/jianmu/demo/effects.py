"""A file that shows what really happened to the world: one line an effect, each with its idempotency key.

It plays the outside service of a real agent: it honours the key, so that an effect repeated after a crash
is refused. Each refusal is counted in a second file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["EffectCounts", "EffectFile"]


@dataclass(frozen=True, slots=True)
class EffectCounts:
    """What the file holds: its lines, how many different keys they carry, how often a key was refused."""

    lines: int = 0
    distinct_keys: int = 0
    refused: int = 0


class EffectFile:
    """An append-only file of JSON lines; one process writes at a time.

    Args:
        path: The file; refusals go beside it, with the suffix ``.refused``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._refused = path.with_suffix(".refused")
        self._keys = {line["key"] for line in _read(path)}

    def append(self, key: str, effect: dict[str, Any]) -> bool:
        """Write one effect; False when its key is there already, and then nothing is written."""
        if key in self._keys:
            _append(self._refused, {"key": key})
            return False
        _append(self.path, {"key": key, **effect})
        self._keys.add(key)
        return True

    def counts(self) -> EffectCounts:
        """Count what is on disk now."""
        keys = [line["key"] for line in _read(self.path)]
        return EffectCounts(len(keys), len(set(keys)), len(_read(self._refused)))


def _append(path: Path, line: dict[str, Any]) -> None:
    """Add a line with one write, so that a killed process leaves it whole or not at all."""
    data = json.dumps(line, ensure_ascii=False).encode("utf-8") + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
