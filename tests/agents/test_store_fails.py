"""A store that fails in the middle of a turn: the error reaches the caller, and nothing is paid for twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import ReActAgent
from jianmu.errors import StorageError
from jianmu.memory import FileCheckpointer
from jianmu.memory.checkpoint.base import JournalRecord
from jianmu.messages import ToolCall
from jianmu.testing.scripted_model import Reply, ScriptedChatModel, ScriptedRequest
from jianmu.tools import current_idempotency_key, tool


class FailsOnce(FileCheckpointer):
    """Cannot save the first answer whose key begins so."""

    def __init__(self, root: Path, key: str) -> None:
        super().__init__(root)
        self.key: str | None = key

    def append_journal(self, thread_id: str, record: JournalRecord) -> None:
        if self.key is not None and record["key"].startswith(self.key):
            self.key = None
            raise StorageError("the disk is full")
        super().append_journal(thread_id, record)


def rule(request: ScriptedRequest) -> Reply:
    results = [message.text for message in request.messages if message.role == "tool"]
    if not results:
        return [ToolCall(id=name, name="note", arguments={"name": name}) for name in "ab"]
    return " ".join(results)


@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize(("key", "asked", "ran"), [("once:tool/1", 1, "abb"), ("once:completion", 2, "ab")])
async def test_an_answer_that_cannot_be_saved_is_an_error_and_the_same_call_goes_on(
    tmp_path: Path, key: str, asked: int, ran: str, parallel: int | None
) -> None:
    runs: list[tuple[str, Any]] = []

    @tool
    def note(name: str) -> str:
        """Note."""
        runs.append((name, current_idempotency_key.get()))
        return f"noted {name}"

    store = FailsOnce(tmp_path, key)
    model = ScriptedChatModel(rule)
    agent = ReActAgent(model, tools=[note], checkpointer=store, parallel_tools=parallel)
    with pytest.raises(StorageError, match="disk is full"):
        await agent.run("go")
    assert len(model.requests) == 1
    stored = await agent.stored_turn("default")
    assert stored is not None
    assert stored.unfinished
    result = await agent.run("go")
    assert result.text == "noted a noted b"
    first_step = [r for r in model.requests if not any(m.role == "tool" for m in r.messages)]
    assert len(first_step) == asked
    assert len({request.idempotency_key for request in first_step}) == 1
    assert len({used for _, used in runs}) == 2
    if parallel is None:
        assert "".join(name for name, _ in runs) == ran
    assert [m.role for m in await agent.history()] == ["user", "assistant", "tool", "tool", "assistant"]
