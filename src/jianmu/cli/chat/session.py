"""One terminal session: lines in, streamed answers out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from jianmu.agents.approval import PendingApproval
from jianmu.agents.chat_model import ChatModel, StreamRestarted, TextDelta
from jianmu.agents.events import (
    AgentEvent,
    ModelFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jianmu.agents.react import ReActAgent
from jianmu.agents.state import open_calls
from jianmu.cli.chat.approvals import ApprovalPrompt
from jianmu.cli.chat.commands import ChatCommands
from jianmu.cli.chat.settings import ChatSettings
from jianmu.cli.chat.shown import shown
from jianmu.cli.chat.store import ChatStore
from jianmu.errors import ApprovalPendingError, JianmuError
from jianmu.skills import Skill
from jianmu.tools import ToolSet

__all__ = ["ChatSession"]

_LONGEST_SHOWN = 200


class ChatSession:
    """One terminal session.

    Args:
        settings: What was set.
        model: Who answers.
        store: The file of threads and memories.
        console: Where it is shown.
        read: Asks the user for a line; raises EOFError at the end and KeyboardInterrupt at Ctrl-C.
        tools: What the model may call besides its memory; those that need approval are asked for.
        skills: Instructions that the model may open.
        interactive: Whether a person is at the other end of `read`.
    """

    def __init__(
        self,
        settings: ChatSettings,
        model: ChatModel,
        store: ChatStore,
        console: Console,
        read: Callable[[str], str] = input,
        *,
        tools: ToolSet | None = None,
        skills: Sequence[Skill] = (),
        interactive: bool = True,
    ) -> None:
        self._console = console
        self._model = model
        self._read = read
        self._approvals = ApprovalPrompt(console, read, interactive=interactive)
        self._interactive = interactive
        self._open = False
        self._begun = False
        self._agent = ReActAgent(
            model,
            tools=tools or (),
            skills=skills,
            system_prompt=settings.system_prompt,
            memory=store.memory,
            memory_use=settings.memory,
            checkpointer=store.checkpointer,
            max_steps=settings.max_steps,
        )
        self._commands = ChatCommands(store, console, settings.thread, self._agent.tools)

    def loop(self) -> None:
        """Talk until the user leaves; every turn is saved step by step."""
        with asyncio.Runner() as runner:
            try:
                self._greet()
                while self._next(runner):
                    pass
            except EOFError:
                self._console.print("\n[dim]nothing was decided; the next start asks again[/dim]")
            finally:
                close = getattr(self._model, "aclose", None)
                if close is not None:
                    runner.run(close())

    def _next(self, runner: asyncio.Runner) -> bool:
        """Take the user's next line; return whether the talk goes on."""
        try:
            if not self._begun:
                self._begun = True
                self._go_on(runner)
            line = self._ask()
            if line is not None:
                self._take(runner, line)
        except KeyboardInterrupt:  # between two moments that expect it: pressed twice, or just too late
            return True
        return line is not None

    def _greet(self) -> None:
        self._console.print(
            f"[bold]jianmu chat[/bold] · model {shown(self._model.name)} · thread "
            f"{shown(self._commands.thread)} · /help for commands"
        )

    def _ask(self) -> str | None:
        while True:
            try:
                line = self._read("> ").strip()
            except EOFError:
                self._console.print()
                return None
            except KeyboardInterrupt:
                self._console.print("\n[dim]/quit or Ctrl-D leaves; the thread is saved[/dim]")
                continue
            if line in ("/quit", "/exit"):
                return None
            if line:
                return line

    def _take(self, runner: asyncio.Runner, line: str) -> None:
        if not line.startswith("/"):
            self._say(runner, line)
            return
        thread = self._commands.thread
        try:
            self._commands.run(line)
        except JianmuError as error:
            self._console.print(f"[red]{shown(str(error))}[/red]")
        if self._commands.thread != thread:
            self._go_on(runner)

    def _say(self, runner: asyncio.Runner, text: str) -> None:
        if self._open and self._is_unfinished(runner):
            self._turn(runner, None)
        if self._open:
            self._console.print("[dim]a decision is still open; your message was not sent[/dim]")
            return
        self._turn(runner, text)

    def _is_unfinished(self, runner: asyncio.Runner) -> bool:
        stored = runner.run(self._agent.stored_turn(self._commands.thread))
        self._open = (
            stored is not None and stored.unfinished
        )  # another chat may have decided, or forgotten it
        return self._open

    def _go_on(self, runner: asyncio.Runner) -> None:
        """End the turn that was cut off in this thread, if there is one."""
        self._open = False
        stored = runner.run(self._agent.stored_turn(self._commands.thread))
        if stored is None:
            return
        count = len(stored.state.messages)
        self._console.print(
            f"[dim]going on with thread {shown(self._commands.thread)}: {count} messages[/dim]"
        )
        if not stored.unfinished:
            return
        calls = open_calls(stored.state.messages)
        if missing := ", ".join(call.name for call in calls if call.name not in self._agent.tools):
            self._console.print(
                f"[yellow]the last turn was cut off at a call of {shown(missing)}, which is not among the "
                "tools: start again with the --tools it had, or say something to go on without[/yellow]"
            )
            return
        said = stored.user_message.text if stored.user_message is not None else ""
        self._console.print(f"[dim]the last turn was cut off and goes on now:[/dim] {shown(said)}")
        self._turn(runner, None)

    def _turn(self, runner: asyncio.Runner, text: str | None) -> None:
        """Run a turn to its end, with a person's decisions where it needs them."""
        self._open = False
        try:
            pending = runner.run(self._show(text))
            while pending:
                answers = self._decide(pending[0])
                if answers is None:
                    return
                pending = runner.run(self._show(None, answers))
        except KeyboardInterrupt:
            self._console.print("\n[dim]stopped; the thread is saved[/dim]")
        except JianmuError as error:
            if isinstance(error, ApprovalPendingError) and not self._interactive:
                raise
            self._console.print(f"\n[red]{shown(str(error))}[/red]")

    def _decide(self, pending: PendingApproval) -> dict[str, Any] | None:
        self._open = True
        try:
            decision = self._approvals.decide(pending, self._commands.thread)
        except KeyboardInterrupt:
            self._console.print(
                "\n[dim]nothing was decided; it is asked again before your next message[/dim]"
            )
            return None
        self._open = False
        return {pending.id: decision.model_dump()}

    async def _show(
        self, text: str | None, answers: Mapping[str, Any] | None = None
    ) -> tuple[PendingApproval, ...]:
        pending: tuple[PendingApproval, ...] = ()
        async with self._agent.stream(text, thread_id=self._commands.thread, answers=answers) as events:
            with _on_interrupt(events.interrupt):
                async for event in events:
                    self._print(event)
                    if isinstance(event, TurnFinished):
                        pending = event.result.pending
        return pending

    def _print(self, event: AgentEvent) -> None:
        say = self._console.print
        match event:
            case TextDelta(text):
                say(shown(text), end="", highlight=False, soft_wrap=True)
                self._mid_line = True
            case StreamRestarted(reason=reason):
                say(f"\n[dim]connection lost, starting again: {shown(reason)}[/dim]")
            case ModelFinished(message=message):
                if message.text and not self._mid_line:  # saved before a restart: no deltas came
                    say(shown(message.text), highlight=False, soft_wrap=True)
                elif self._mid_line:
                    say()
                self._mid_line = False
            case ToolStarted(call):
                say(
                    f"[cyan]· {shown(call.name)}[/cyan] [dim]{_short(str(call.arguments))}[/dim]",
                    highlight=False,
                )
            case ToolFinished(_, message):
                colour = "red" if message.is_error else "green"
                say(f"[{colour}]  {_short(message.text)}[/{colour}]", highlight=False)
            case TurnFinished(result) if result.outcome in ("step_limit", "interrupted", "cancelled"):
                say(f"[yellow]({shown(result.explanation)})[/yellow]")
            case _:
                pass

    _mid_line = False


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return shown(flat if len(flat) <= _LONGEST_SHOWN else flat[:_LONGEST_SHOWN] + " …")


@contextmanager
def _on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C end the turn properly; where a loop has no signals it cancels the turn, saved too."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, stop)
    except NotImplementedError:
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
