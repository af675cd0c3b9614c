"""A turn that is cancelled at any await goes on as if nothing had happened; processes never share one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import ReActAgent
from jianmu.errors import ThreadBusyError
from jianmu.memory import FileCheckpointer, InMemoryCheckpointer, SqliteCheckpointer
from jianmu.messages import ToolCall
from jianmu.testing.scripted_model import Reply, ScriptedChatModel, ScriptedRequest
from jianmu.tools import current_idempotency_key, tool

ROLES = ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]


def rule(request: ScriptedRequest) -> Reply:
    step = sum(message.role == "assistant" for message in request.messages)
    names = [["a", "b"], ["c"]]
    if step == len(names):
        return "done"
    return [ToolCall(id=name, name="note", arguments={"name": name}) for name in names[step]]


class World:
    """What the tools did, in one life of the program after the other."""

    def __init__(self) -> None:
        self.keys: dict[str, set[str | None]] = {}
        self.runs: Counter[str] = Counter()

    def agent(self, checkpointer: InMemoryCheckpointer, parallel: int | None) -> ReActAgent:
        @tool
        async def note(name: str) -> str:
            """Note a name."""
            self.keys.setdefault(name, set()).add(current_idempotency_key.get())
            self.runs[name] += 1
            await asyncio.sleep(0)
            return f"noted {name}"

        model = ScriptedChatModel(rule)
        return ReActAgent(model, tools=[note], checkpointer=checkpointer, parallel_tools=parallel)


async def turns_of_the_loop(task: asyncio.Task[Any], count: int) -> bool:
    """Let the loop turn `count` times; return whether the task still runs."""
    for _ in range(count):
        if task.done():
            return False
        await asyncio.sleep(0)
    return not task.done()


@pytest.mark.parametrize("parallel", [None, 8])
@pytest.mark.parametrize("how", ["task", "agent"])
async def test_a_turn_cancelled_at_any_await_goes_on(how: str, parallel: int | None) -> None:
    cancelled = 0
    for count in range(0, 400, 3):
        world, checkpointer = World(), InMemoryCheckpointer()
        agent = world.agent(checkpointer, parallel)
        task = asyncio.create_task(agent.run("go", message_id="m"))
        if await turns_of_the_loop(task, count):
            cancelled += 1
            if how == "task":
                task.cancel()
            else:
                agent.cancel()
        await asyncio.gather(task, return_exceptions=True)
        again = world.agent(checkpointer, parallel)
        result = await asyncio.wait_for(again.run("go", message_id="m"), 10)
        assert result.text == "done", count
        assert [message.role for message in await again.history()] == ROLES, count
        assert {name: len(keys) for name, keys in world.keys.items()} == {"a": 1, "b": 1, "c": 1}, count
        assert sum(runs - 1 for runs in world.runs.values()) <= (2 if parallel else 1), count
    assert cancelled > 20


PROGRAM = """
    import asyncio, sys
    from pathlib import Path
    from jianmu.agents import ReActAgent
    from jianmu.memory import FileCheckpointer, SqliteCheckpointer
    from jianmu.messages import ToolCall
    from jianmu.testing.scripted_model import ScriptedChatModel
    from jianmu.tools import tool

    @tool
    async def wait() -> str:
        "Wait for ever."
        print("waiting", flush=True)
        await asyncio.Event().wait()

    kind, path = sys.argv[1:]
    store = FileCheckpointer(Path(path)) if kind == "file" else SqliteCheckpointer(Path(path) / "t.db")
    model = ScriptedChatModel([ToolCall(id="w", name="wait", arguments={})])
    asyncio.run(ReActAgent(model, tools=[wait], checkpointer=store).run("go", thread_id="t"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("kind", ["file", "sqlite"])
async def test_two_processes_never_work_on_one_thread(tmp_path: Path, kind: str) -> None:
    @tool
    async def wait() -> str:
        """Do not wait."""
        return "waited"

    store = FileCheckpointer(tmp_path) if kind == "file" else SqliteCheckpointer(tmp_path / "t.db")
    agent = ReActAgent(ScriptedChatModel(["done"]), tools=[wait], checkpointer=store)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), kind, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert await asyncio.to_thread(other.stdout.readline) == "waiting\n"
        with pytest.raises(ThreadBusyError):
            await agent.run("go", thread_id="t")
        assert (await agent.history("t"))[-1].tool_calls[0].name == "wait"
        other.kill()
    async with asyncio.timeout(60):
        while True:
            try:
                result = await agent.run("go", thread_id="t")
                break
            except ThreadBusyError:  # the dead holder's lease runs out
                await asyncio.sleep(0.2)
    assert result.text == "done"
    assert [message.text for message in result.messages if message.role == "tool"] == ["waited"]
    store.close()
