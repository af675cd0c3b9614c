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


def press_ctrl_c(child: Any, says: str) -> None:
    """Press Ctrl-C at a prompt until the chat answers it.

    Between showing a prompt and waiting for a key CPython's `input` is deaf for an instant, which no person
    hits and a test does.
    """
    import pexpect

    for _ in range(10):
        child.sendintr()
        if child.expect([says, pexpect.TIMEOUT], timeout=3) == 0:
            return
    raise AssertionError(f"Ctrl-C was never answered by {says!r}: {child.before!r}")
