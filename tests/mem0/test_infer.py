"""infer=True: what mem0 really asks the model, and what its answers become."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from jianmu.memory.long_term.mem0 import Mem0LongTermMemory

from .server import Wire

Open = Callable[..., Mem0LongTermMemory]
MAJOR = int(version("mem0ai").split(".")[0])


def model_that_finds(fact: str) -> Callable[[dict[str, Any]], str]:
    """Answer 1.x's two questions (facts, then what to do with them) and 2.x's single one."""

    def reply(body: dict[str, Any]) -> str:
        asked = json.dumps(body["messages"], ensure_ascii=False)
        if MAJOR >= 2:
            return json.dumps({"memory": [{"id": "0", "text": fact, "attributed_to": "user"}]})
        if "memory manager" in asked:
            return json.dumps({"memory": [{"id": "0", "text": fact, "event": "ADD"}]})
        return json.dumps({"facts": [fact]})

    return reply


def test_the_model_is_asked_and_its_fact_is_what_is_stored(open_memory: Open, wire: Wire) -> None:
    wire.reply = model_that_finds("Likes green tea")
    memory = open_memory(infer=True)
    result = memory.record("you know, I really do like green tea", namespace=("agent", "u1"), key="k1")
    assert result["status"] == "stored"
    assert result["key"] == "k1"
    assert len(wire.chats()) == (1 if MAJOR >= 2 else 2)
    assert "I really do like green tea" in json.dumps(wire.chats()[0])
    (hit,) = memory.retrieve("green tea", namespace=("agent", "u1"))
    assert hit["content"] == "Likes green tea"
    assert hit["id"] == result["id"]
    assert hit["metadata"]["key"] == "k1"
    assert memory.retrieve("green tea", namespace=("agent", "u2")) == []


def test_a_verbatim_record_never_asks_the_model(open_memory: Open, wire: Wire) -> None:
    memory = open_memory(infer=False)
    memory.record("I really do like green tea")
    assert wire.chats() == []


@pytest.mark.parametrize("answer", ['{"facts": [], "memory": []}', "not json at all", ""])
def test_a_model_that_extracts_nothing_is_said_so(open_memory: Open, wire: Wire, answer: str) -> None:
    wire.reply = lambda body: answer
    result = open_memory(infer=True).record("hello there", key="k")
    assert result == {"id": None, "ids": [], "key": "k", "status": "nothing"}


def test_delete_all_removes_the_raw_messages_too(open_memory: Open, wire: Wire, tmp_path: Any) -> None:
    wire.reply = model_that_finds("Hides the tangerine")
    memory = open_memory(infer=True)
    memory.record("I hide the tangerine in the attic", namespace=("a",))
    assert memory.delete_all(("a",)) == 1
    memory.close()
    assert b"tangerine" not in (tmp_path / "history.db").read_bytes()
