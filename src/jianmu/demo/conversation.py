"""A conversation on disk: JSON lines of role, content and, where known, time and name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from jianmu.errors import ConfigError

__all__ = ["Fact", "Turn", "facts_of", "read_conversation"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn; `day` is the date of its time, or empty."""

    number: int
    speaker: str
    content: str
    day: str
    is_persons: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence worth keeping, with the key under which it is kept."""

    key: str
    content: str
    turn: int
    day: str


def read_conversation(path: Path | None = None) -> list[Turn]:
    """Read a conversation; None is the one that comes with the package.

    Raises:
        ConfigError: The file cannot be read, or a line is no turn; the message names the line.
    """
    try:
        if path is None:
            text = files("jianmu.demo").joinpath("conversation.jsonl").read_text(encoding="utf-8")
        else:
            text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as UTF-8 text: {error}") from error
    lines = [line for line in text.split("\n") if line.strip()]
    turns = [_turn(number, line, path) for number, line in enumerate(lines, start=1)]
    if not turns:
        raise ConfigError(
            f'{path} has no turns; a line looks like {{"role": "user", "content": "I like tea."}}'
        )
    return turns


def _turn(number: int, line: str, path: Path | None) -> Turn:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{path}, turn {number}: no JSON ({error})") from error
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("role"), str)
        or not isinstance(data.get("content"), str)
    ):
        raise ConfigError(f'{path}, turn {number}: needs "role" and "content", both text')
    name = data.get("name")
    return Turn(
        number=number,
        speaker=name if isinstance(name, str) and name else data["role"],
        content=data["content"],
        day=_day(data.get("time"), number, path),
        is_persons=data["role"] == "user" or bool(name),
    )


def _day(time: object, number: int, path: Path | None) -> str:
    if time is None:
        return ""
    try:
        return datetime.fromisoformat(str(time)).date().isoformat()
    except ValueError as error:
        raise ConfigError(f"{path}, turn {number}: time must be ISO 8601, not {str(time)[:40]!r}") from error


_SENTENCE_END = re.compile(
    r"(?<=[。！？])|(?<=[.!?])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\bMrs\.)\s+|\n+"
)
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SMALL_TALK = re.compile(
    r"(hi|hello|hey|thanks|thank you|good (morning|evening|night)|ok|你好|谢谢|好的)\b", re.IGNORECASE
)


def facts_of(turn: Turn) -> list[Fact]:
    """Return what a person stated in a turn: sentences that ask nothing and say enough. No model is asked."""
    if not turn.is_persons:
        return []
    stated = [sentence.strip() for sentence in _SENTENCE_END.split(turn.content)]
    return [
        Fact(f"turn-{turn.number:04d}-{number}", f"{turn.speaker}: {sentence}", turn.number, turn.day)
        for number, sentence in enumerate((s for s in stated if _is_worth_keeping(s)), start=1)
    ]


def _is_worth_keeping(sentence: str) -> bool:
    if not sentence or sentence.endswith(("?", "？")):
        return False
    if _SMALL_TALK.match(sentence) and len(sentence) < 30:
        return False
    return len(_WIDE.findall(sentence)) >= 6 or len(sentence.split()) >= 4


def all_facts(turns: list[Turn]) -> Iterator[Fact]:
    """Give the facts of a whole conversation, in order."""
    for turn in turns:
        yield from facts_of(turn)
