"""Data that the suites save."""

from __future__ import annotations

from typing import Any

from jianmu.memory.checkpoint.base import (
    JournalRecord,
)

__all__ = ["HOSTILE_IDS", "journal_record", "state_at"]

HOSTILE_IDS = (
    *("测试" * 60, "x" * 300, "y" * 100_000, "🙂", "\u00e9", "e\u0301", "\ufb01", "\u200b", "\ud800"),
    *(
        "Thread",
        "thread",
        "THREAD",
        "straße",
        "strasse",
        "ı",
        "i",
        "a.",
        "a ",
        " a",
        "a",
        ".",
        "..",
        "~",
        "-",
    ),
    *("line:U1", "CON", "con", "nul", "com1", "lpt9.txt", "aux.", "../up", "..\\up", "/etc/passwd", "a/b"),
    *(
        "a\\b",
        "a\x00b",
        "a",
        "a\nb",
        "a\r\nb",
        "a\tb",
        'a"b',
        "a'b",
        "a%b",
        "a_b",
        "a*b",
        "a?b",
        "<a>|",
        "$HOME",
    ),
    *(
        "%00",
        "a;DROP TABLE checkpoints",
        "{}",
        "[0]",
        "null",
        "1",
        "01",
        "1.0",
        "True",
        "t1",
        "t10",
        "t1\x7f",
    ),
    *("a\u2028b", "\ufeffa", "session-42.jsonl", "session-42.lock", "session-42"),
)
"""Thread ids that broke somebody's store."""


def state_at(step: int) -> dict[str, Any]:
    """Return the state of a thread whose list grows by one item a step."""
    return {
        "n": step,
        "items": [{"role": "user", "content": f"message {index}"} for index in range(step)],
        "profile": {"name": "Ada", "seen": step // 4},
    }


def journal_record(number: int, value: Any = None) -> JournalRecord:
    """Return a record with a key of its own."""
    return JournalRecord(
        run_id="run", path="0/1", activation=1, key=f"key {number}", value=number if value is None else value
    )
