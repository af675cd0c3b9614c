"""Stopping a turn from elsewhere, reading a thread, and saying why there is no answer."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import ReActAgent, TextDelta, TurnFinished
from jianmu.errors import ThreadBusyError
from jianmu.memory import FileCheckpointer
from jianmu.messages import ToolCall
from jianmu.testing.scripted_model import ScriptedChatModel
from jianmu.tools import tool


class Waiting(ScriptedChatModel):
    """Says a word and waits, until it is let go."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.waits = True
        self.begun = 0

    async def stream(self, *args: Any, **kwargs: Any) -> Any:
        self.begun += 1
        if self.waits:
            yield TextDelta("so far")
            await asyncio.Event().wait()
        async for part in super().stream(*args, **kwargs):
            yield part


async def until_begun(model: Waiting) -> None:
    async with asyncio.timeout(5):
        while not model.begun:
            await asyncio.sleep(0.001)


async def test_a_cancelled_turn_says_so_and_goes_on_with_the_same_call(tmp_path: Path) -> None:
    model = Waiting(["done"])
    agent = ReActAgent(model, checkpointer=FileCheckpointer(tmp_path))
    running = asyncio.create_task(agent.run("go", thread_id="t"))
    await until_begun(model)
    assert not agent.cancel("another")
    assert agent.cancel("t")
    result = await asyncio.wait_for(running, 5)
    assert result.outcome == "cancelled"
    assert "goes on" in result.explanation or "go on" in result.explanation
    assert not agent.cancel("t")
    stored = await agent.stored_turn("t")
    assert stored is not None
    assert stored.unfinished
    model.waits = False
    assert (await agent.run("go", thread_id="t")).text == "done"
    assert [message.role for message in await agent.history("t")] == ["user", "assistant"]


async def test_a_turn_can_be_cancelled_from_another_thread(tmp_path: Path) -> None:
    model = Waiting([])
    agent = ReActAgent(model)
    running = asyncio.create_task(agent.run("go"))
    await until_begun(model)
    threading.Thread(target=agent.cancel).start()
    assert (await asyncio.wait_for(running, 5)).outcome == "cancelled"


async def test_a_turn_can_be_interrupted_by_its_thread_from_another_thread() -> None:
    model = Waiting([])
    agent = ReActAgent(model)
    running = asyncio.create_task(agent.run("go", thread_id="t"))
    await until_begun(model)
    threading.Thread(target=agent.interrupt, args=("t",)).start()
    result = await asyncio.wait_for(running, 5)
    assert (result.outcome, result.text) == ("interrupted", "so far [interrupted]")
    assert result.explanation.startswith("interrupted")
    assert not agent.interrupt("t")


async def test_cancelling_an_older_turn_that_is_ended_first_does_not_begin_the_new_one() -> None:
    model = Waiting(["old", "new"])
    agent = ReActAgent(model)
    running = asyncio.create_task(agent.run("old"))
    await until_begun(model)
    agent.cancel()
    await running
    running = asyncio.create_task(agent.run("new"))
    while model.begun < 2:
        await asyncio.sleep(0.001)
    agent.cancel()
    assert (await asyncio.wait_for(running, 5)).outcome == "cancelled"
    model.waits = False
    stream = agent.stream("new")
    texts = [event.result.text async for event in stream if isinstance(event, TurnFinished)]
    assert texts == ["old", "new"]


async def test_a_cancel_right_after_the_call_is_not_lost() -> None:
    model = ScriptedChatModel(["never", "later"])
    agent = ReActAgent(model)
    running = asyncio.create_task(agent.run("go"))
    while not agent.cancel():
        await asyncio.sleep(0)
    assert (await asyncio.wait_for(running, 5)).outcome == "cancelled"
    assert model.requests == []
    assert (await agent.run("go")).text == "never"


async def test_a_second_run_on_a_busy_thread_is_refused_and_the_first_can_still_be_cancelled() -> None:
    model = Waiting([])
    agent = ReActAgent(model)
    running = asyncio.create_task(agent.run("go"))
    await until_begun(model)
    with pytest.raises(ThreadBusyError):
        await agent.run("go")
    assert agent.cancel()
    assert (await asyncio.wait_for(running, 5)).outcome == "cancelled"


async def test_the_step_limit_is_explained_and_the_talk_can_go_on() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    calls = [ToolCall(id=f"c{n}", name="look", arguments={}) for n in range(3)]
    agent = ReActAgent(ScriptedChatModel([*calls, "at last"]), tools=[look], max_steps=3)
    result = await agent.run("look")
    assert result.outcome == "step_limit"
    assert "after 3 completions (max_steps)" in result.explanation
    result = await agent.run("go on")
    assert (result.text, result.explanation) == ("at last", "")


async def test_a_suspended_turn_says_what_it_waits_for() -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = ReActAgent(ScriptedChatModel([ToolCall(id="c", name="pay", arguments={})]), tools=[pay])
    result = await agent.run("pay")
    assert "decision on pay" in result.explanation
    assert "answers=" in result.explanation


async def test_the_history_of_a_thread_that_has_none_is_empty() -> None:
    assert await ReActAgent(ScriptedChatModel([])).history("nothing") == []
