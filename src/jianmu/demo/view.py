"""The demo on a screen: a live tree where there is a terminal, plain lines where there is none."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from py_trees.behaviour import Behaviour
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from jianmu.demo.story import Death, Story

__all__ = ["Screen", "Silence", "conclusion", "introduction"]

_LOOKS = {
    "SUCCESS": ("✔", "green"),
    "FAILURE": ("✘", "red"),
    "RUNNING": ("▶", "yellow"),
    "INVALID": ("·", "dim"),
}


class Silence:
    """Shows nothing."""

    def started(self, process: int, pid: int, saved_step: int | None) -> None:
        """Show nothing."""

    def changed(self, turn: int, step: int, statuses: dict[str, str]) -> None:
        """Show nothing."""

    def died(self, death: Death, statuses: dict[str, str]) -> None:
        """Show nothing."""

    def asking(self) -> None:
        """Show nothing."""


class Screen:
    """Shows a demo as it goes; use it as a context manager.

    Args:
        console: Where to.
        root: The learner's tree, for its shape and names.
        turns: How many turns there are.
    """

    def __init__(self, console: Console, root: Behaviour, turns: int) -> None:
        self._console = console
        self._root = root
        self._turns = turns
        self._title = ""
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(console=console, refresh_per_second=20, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, process: int, pid: int, saved_step: int | None) -> None:
        """Say which process begins, and where."""
        self._title = f"process {process} (pid {pid})"
        where = (
            "starts from nothing" if saved_step is None else f"found step {saved_step} and goes on from it"
        )
        self._console.print(Text.assemble(("▶ ", "green"), (self._title, "bold"), f" {where}"))

    def changed(self, turn: int, step: int, statuses: dict[str, str]) -> None:
        """Redraw the tree, on a terminal."""
        if self._live is not None:
            self._live.update(
                Panel(self._picture(turn, statuses), title=f"{self._title}, step {step}", width=72)
            )

    def died(self, death: Death, statuses: dict[str, str]) -> None:
        """Show where it died, with the tree as it was saved last."""
        at = " and ".join(f"“{name}”" for name in death.running) or "no leaf: between two ticks"
        self._console.print(
            Text.assemble(
                ("✖ SIGKILL", "bold red"),
                f" at tick {death.tick} (step {death.step}), turn {death.turn} of {self._turns}, in {at}",
            )
        )
        self._console.print(self._picture(death.turn, statuses))

    def asking(self) -> None:
        """Clear the live picture."""
        if self._live is not None:
            self._live.update(Text("a new thread asks the memory ..."))

    def _picture(self, turn: int, statuses: dict[str, str]) -> RenderableType:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(self._turns, turn, width=46), f"turn {turn} of {self._turns}")
        return Group(_branch(self._root, "0", statuses, Tree("", hide_root=True)), bar)


def introduction(story: Story, kills: int) -> RenderableType:
    """Return what a newcomer is about to see."""
    return Panel(
        f"A behaviour tree reads a conversation of [b]{story.turns}[/b] turns and keeps the "
        f"[b]{story.facts}[/b] facts in it, by a memory tool and in a notebook file. It is killed "
        f"[b]{kills}[/b] times at random moments (SIGKILL: no clean-up runs). A new process goes on each "
        "time, at the very next step, and no effect happens twice. In the end a [b]new thread[/b] answers "
        "questions from memory.",
        title="Jianmu 建木",
        width=78,
    )


def conclusion(story: Story) -> RenderableType:
    """Return what happened, as tables."""
    return Group(_deaths(story), _effects(story), _answers(story))


def _branch(node: Behaviour, path: str, statuses: dict[str, str], parent: Tree) -> Tree:
    icon, style = _LOOKS[statuses.get(path, "INVALID")]
    kind = type(node).__name__ if node.children else "leaf"
    branch = parent.add(Text.assemble((f"{icon} {node.name}", style), (f"  {kind}", "dim")))
    for index, child in enumerate(node.children):
        _branch(child, f"{path}/{index}", statuses, branch)
    return parent


def _deaths(story: Story) -> Table:
    table = Table("process", "killed after", "in the middle of", "the next went on at", "", title="Its place")
    for death in story.deaths:
        mark = Text("✔", "green") if death.went_on_exactly else Text("✘", "red")
        running = ", ".join(death.running) or "between two ticks"
        went_on = "(it had finished)" if death.was_over else f"tick 1, step {death.resumed_step}"
        died = f"tick {death.tick}, step {death.step}"
        table.add_row(str(death.process), died, running, went_on, mark)
    table.caption = f"finished at step {story.last_step}"
    return table


def _effects(story: Story) -> Table:
    table = Table("what happened to the world", "count", title="Its effects")
    effects = story.effects
    table.add_row("facts in the conversation", str(story.facts))
    table.add_row("lines in the notebook file", str(effects.lines))
    table.add_row("different idempotency keys in it", str(effects.distinct_keys))
    table.add_row("repeats that the key refused", str(effects.refused))
    table.add_row("memories stored", str(story.memories))
    verdict = "✔ every effect exactly once" if story.is_exactly_once else "✘ the counts differ"
    table.caption = Text(verdict, "green" if story.is_exactly_once else "red")
    return table


def _answers(story: Story) -> Table:
    table = Table("the new thread asks", title="Its knowledge", show_lines=True)
    table.add_column("memory_search says", overflow="fold")
    table.add_column()
    for answer in story.answers:
        lines = [line.strip("| ") for line in answer.text.splitlines() if line.lstrip().startswith("|")]
        mark = Text("✔", "green") if answer.is_expected else Text("·", "dim")
        table.add_row(Text(answer.question), Text("\n".join(lines) or answer.text), mark)
    return table
