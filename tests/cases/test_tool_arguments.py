"""Reports of peers about tool arguments (T11) and approvals (T3): what an agent does with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import ReActAgent
from jianmu.memory import MemoryService, SimpleStore
from jianmu.messages import Message, ToolCall
from jianmu.testing import ScriptedChatModel


async def answer_to(memory: MemoryService, **arguments: Any) -> Message:
    call = ToolCall(id="c", name="memory_search", arguments=arguments)
    result = await ReActAgent(ScriptedChatModel([call, "ok"]), memory=memory).run("go")
    (message,) = [message for message in result.messages if message.role == "tool"]
    return message


@pytest.fixture
def memory(tmp_path: Path) -> MemoryService:
    service = MemoryService(SimpleStore(tmp_path / "m.json"), ("a",))
    service.add("x marks the spot", key="k")
    return service


async def test_null_for_an_optional_argument_means_not_given(memory: MemoryService) -> None:
    plain, null = await answer_to(memory, query="x"), await answer_to(memory, query="x", k=None)
    assert plain.text == null.text
    assert "x marks the spot" in plain.text
    assert not null.is_error


@pytest.mark.parametrize("arguments", [{"query": None}, {}])
async def test_a_missing_argument_is_named_to_the_model(
    memory: MemoryService, arguments: dict[str, Any]
) -> None:
    message = await answer_to(memory, **arguments)
    assert message.is_error
    assert "query" in message.text


async def test_an_unknown_argument_is_no_crash(memory: MemoryService) -> None:
    message = await answer_to(memory, query="x", colour="red")
    assert message.role == "tool"


async def test_a_number_as_text_is_read_where_a_number_is_declared(memory: MemoryService) -> None:
    assert not (await answer_to(memory, query="x", k="3")).is_error
