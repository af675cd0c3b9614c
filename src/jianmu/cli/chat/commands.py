"""What a line that begins with a slash does."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from jianmu.cli.chat.shown import shown
from jianmu.cli.chat.store import ChatStore
from jianmu.tools import ToolSet

__all__ = ["ChatCommands"]

_PAGE = 20


class ChatCommands:
    """The slash commands and the thread that the talk is on.

    Args:
        store: The chat's file.
        console: Where answers go.
        thread: The thread to begin with.
        tools: What the model may call.
    """

    def __init__(self, store: ChatStore, console: Console, thread: str, tools: ToolSet) -> None:
        self.thread = thread
        self._tools = tools
        self._store = store
        self._console = console
        self._commands: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "memory": self._memory,
            "threads": self._threads,
            "tools": self._list_tools,
            "fork": self._fork,
            "forget": self._forget,
        }

    def run(self, line: str) -> None:
        """Run one command line."""
        name, _, argument = line[1:].partition(" ")
        command = self._commands.get(name)
        if command is None:
            self._console.print(f"no command /{shown(name)}; /help lists them")
            return
        command(argument.strip())

    def _help(self, argument: str) -> None:
        """/help: this list."""
        for command in self._commands.values():
            self._console.print(shown(inspect.getdoc(command) or ""))
        self._console.print("/quit: leave; Ctrl-C stops an answer")

    def _memory(self, query: str) -> None:
        """/memory [QUERY]: what is remembered, newest first, or what fits the query."""
        store = self._store
        if query:
            found = store.memory.search(query, limit=_PAGE)
        else:
            found = store.long_term.list(namespace=store.namespace, limit=_PAGE)
        if not found:
            self._console.print("nothing is remembered" + (" about that" if query else " yet"))
            return
        table = Table("id", "memory", box=None)
        for item in found:
            table.add_row(shown(str(item["id"])), shown(item["content"]))
        self._console.print(table)

    def _threads(self, name: str) -> None:
        """/threads [NAME]: the threads; with a name, talk on that one (new if it does not exist)."""
        if name:
            self.thread = name
            self._console.print(f"now on thread {shown(name)}")
            return
        for thread in self._store.checkpointer.list_threads() or [self.thread]:
            mark = "*" if thread == self.thread else " "
            self._console.print(f"{mark} {shown(thread)}")

    def _list_tools(self, argument: str) -> None:
        """/tools: what the model may call, and which calls ask you first."""
        table = Table("tool", "asks you", "what it does", box=None)
        for each in self._tools:
            first = each.description.strip().partition("\n")[0]
            table.add_row(shown(each.name), "yes" if each.requires_approval else "", shown(first))
        self._console.print(table)

    def _fork(self, name: str) -> None:
        """/fork [NAME]: go on in a copy of this thread; the old one stays as it is."""
        taken = set(self._store.checkpointer.list_threads())
        if self.thread not in taken:
            self._console.print("nothing was said on this thread yet")
            return
        new = name or next(
            candidate for n in range(2, len(taken) + 3) if (candidate := f"{self.thread}-{n}") not in taken
        )
        self._store.checkpointer.fork_thread(self.thread, new)
        self.thread = new
        self._console.print(f"now on thread {shown(new)}")

    def _forget(self, what: str) -> None:
        """/forget ID, /forget thread or /forget all: a memory, this thread, or every memory here."""
        store = self._store
        if what == "all":
            count = store.long_term.delete_all(store.namespace)
            self._console.print(f"forgot {count} memories")
        elif what == "thread":
            store.checkpointer.delete_thread(self.thread)
            self._console.print(f"forgot thread {shown(self.thread)}")
        elif not what:
            self._console.print("say which: /forget ID (see /memory), /forget thread or /forget all")
        elif store.memory.delete(what):
            self._console.print("forgotten")
        else:
            self._console.print(f"no memory has the id {shown(what)}; /memory lists them")
