"""Reads LoCoMo's evidence labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["evidence_ids"]


def evidence_ids(given: Sequence[str]) -> Iterator[str]:
    """Turn ids out of joined and misspelt ones: "D8:6; D9:17", "D:11:26", "D30:05"."""
    for part in " ".join(given).replace(";", " ").replace(",", " ").split():
        numbers = [piece for piece in part.removeprefix("D").split(":") if piece]
        if len(numbers) == 2 and all(piece.isdigit() for piece in numbers):
            yield f"D{int(numbers[0])}:{int(numbers[1])}"
