"""What a call of a tool gives back: text for the model, and whether it is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pydantic_core

__all__ = ["ToolResult", "as_result", "capped", "output_text"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One call's answer.

    Attributes:
        content: Text for the model.
        is_error: The call failed; the content says why and what to do.
        error_type: The class name of the exception behind it, for an operator.
    """

    content: str
    is_error: bool = False
    error_type: str | None = None


def as_result(value: Any) -> ToolResult:
    """Return what a function returned as a result: a `ToolResult` as it is, all else as its text."""
    return value if isinstance(value, ToolResult) else ToolResult(output_text(value))


def output_text(value: Any) -> str:
    """Return what a function returned as text: strings as they are, all else as JSON."""
    if value is None:
        return "(no output)"
    if isinstance(value, str):
        return value
    if isinstance(value, ToolResult):
        return value.content
    if isinstance(value, (bytes, bytearray)):
        return f"({len(value)} bytes of binary output)"
    return pydantic_core.to_json(value, fallback=str, inf_nan_mode="constants").decode("utf-8")


def capped(text: str, most: int | None) -> str:
    """Return `text`, or its beginning and a note when it has more than `most` characters."""
    if most is None or len(text) <= most:
        return text
    note = f"\n[cut: {len(text)} characters, the first {{}} shown]"
    shown = max(0, most - len(note) - len(str(most)))
    return text[:shown] + note.format(shown)
