"""What a person does at a chat's prompt."""

from __future__ import annotations

from typing import Any


def say(child: Any, line: str) -> str:
    """Send a line and return what comes before the next prompt."""
    child.sendline(line)
    child.expect("\r?\n> |^> ")
    return str(child.before)


def begin(child: Any) -> str:
    """Wait for the first prompt and return what comes before."""
    child.expect("> ")
    return str(child.before)


def leave(child: Any) -> None:
    """Leave properly."""
    import pexpect

    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
