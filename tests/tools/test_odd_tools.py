"""Tools that raise what they should not, and return what nobody expects: an answer to the model, always."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jianmu.agents import ReActAgent
from jianmu.messages import ToolCall
from jianmu.testing.scripted_model import ScriptedChatModel
from jianmu.tools import FunctionTool, Tool, ToolResult, tool


class Mute(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising(error: BaseException, is_async: bool) -> FunctionTool:
    if is_async:

        @tool(name="odd")
        async def later() -> str:
            """Fail."""
            raise error

        return later

    @tool(name="odd")
    def now() -> str:
        """Fail."""
        raise error

    return now


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        asyncio.CancelledError(),
        StopIteration(),
        StopAsyncIteration(),
        TimeoutError(),
        Mute(),
        ExceptionGroup("several", [ValueError("x")]),
        MemoryError(),
        RecursionError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_tool_raises_is_an_answer_and_the_run_goes_on(
    error: BaseException, is_async: bool
) -> None:
    odd = raising(error, is_async)
    model = ScriptedChatModel([ToolCall(id="a", name="odd", arguments={}), "ok"])
    result = await asyncio.wait_for(ReActAgent(model, tools=[odd]).run("go"), 10)
    assert result.text == "ok"
    (answer,) = [message for message in result.messages if message.role == "tool"]
    assert answer.is_error
    assert len(model.requests) == 2


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_a_thread_of_a_tool_cannot_end_the_program(error: BaseException) -> None:
    result = await raising(error, is_async=False).acall()
    assert result.is_error
    assert type(error).__name__ in result.content


async def test_a_cancelled_tool_is_cancelled_and_no_answer() -> None:
    @tool
    async def forever() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    task = asyncio.create_task(forever.acall())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_a_tool_was_cancelled_by_itself_is_an_answer() -> None:
    @tool
    async def waits_for_a_dead_task() -> str:
        """Wait for a task that somebody cancelled."""
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner
        return ""

    result = await waits_for_a_dead_task.acall()
    assert (result.is_error, result.error_type) == (True, "CancelledError")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_may_return_a_result_of_its_own(is_async: bool) -> None:
    own = ToolResult("out of stock", is_error=True, error_type="Stock")

    @tool(name="buy")
    def now() -> object:
        """Buy."""
        return own

    @tool(name="buy")
    async def later() -> object:
        """Buy."""
        return own

    buy = later if is_async else now
    assert await buy.acall() == own
    if not is_async:
        assert buy.call() == own


class Loose(Tool):
    """A tool that does not keep to text."""

    name = "loose"

    def __init__(self, value: Any) -> None:
        self.value = value

    def run(self, **arguments: Any) -> str:
        return self.value  # type: ignore[no-any-return]


@pytest.mark.parametrize(("value", "text"), [(5, "5"), (None, "(no output)"), ({"a": 1}, '{"a":1}')])
async def test_a_tool_that_returns_no_text_is_shown_as_json(value: Any, text: str) -> None:
    assert Loose(value).call().content == text
    assert (await Loose(value).acall()).content == text
