"""Asking the person at the terminal whether one exact call may run."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from jianmu.agents.approval import Decision, PendingApproval
from jianmu.cli.chat.shown import shown
from jianmu.errors import ApprovalPendingError

__all__ = ["ApprovalPrompt", "exact"]


class ApprovalPrompt:
    """Shows a call as it would run and reads the decision.

    Args:
        console: Where it is shown.
        read: Asks for a line; raises EOFError at the end and KeyboardInterrupt at Ctrl-C.
        interactive: Whether a person is there: a pipe's next line is never taken for a decision.
    """

    def __init__(self, console: Console, read: Callable[[str], str], *, interactive: bool = True) -> None:
        self._console = console
        self._read = read
        self._interactive = interactive

    def decide(self, pending: PendingApproval, thread: str) -> Decision:
        """Ask until the answer is clear: y, n, or words that tell the model why not.

        Raises:
            ApprovalPendingError: Nobody is at the terminal; the message says how to decide.
            EOFError: Ctrl-D; nothing was decided.
            KeyboardInterrupt: Ctrl-C; nothing was decided.
        """
        what = pending.tool or "a question"
        if not self._interactive:
            raise ApprovalPendingError(
                f"{what} needs your approval, and standard input is no terminal. The call waits, saved in "
                f"thread {thread!r}: start jianmu chat with the same settings in a terminal to decide"
            )
        self._console.print(f"[yellow]? {shown(what)}[/yellow] asks to run with exactly these arguments:")
        self._console.print(escape(exact(pending.arguments)), highlight=False, soft_wrap=True)
        while True:
            answer = self._read("run it? [y/n, or say why not] ").strip()
            if answer.lower() in ("y", "yes"):
                return Decision(approved=True)
            if answer.lower() in ("n", "no"):
                return Decision(approved=False)
            if answer:
                return Decision(approved=False, reason=answer)


def exact(arguments: Mapping[str, Any]) -> str:
    """Return `arguments` as JSON in which no character is invisible or turns the line around."""
    text = json.dumps(dict(arguments), ensure_ascii=False, indent=2, default=str)
    return "".join(c if c == "\n" or not _hidden(c) else json.dumps(c)[1:-1] for c in text)


def _hidden(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
