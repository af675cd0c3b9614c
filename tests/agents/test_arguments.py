"""A wrong argument of an agent is named at once, with the right one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import EchoChatModel, ReActAgent
from jianmu.errors import ConfigError
from jianmu.memory import InMemoryCheckpointer, MemoryService, SimpleStore


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "gpt-4.1-mini"}, r"model is a str: give a chat model, e\.g\. OpenAIChatModel"),
        ({"model": EchoChatModel}, r"model is the class EchoChatModel"),
        ({"memory": SimpleStore(Path("m.json"))}, r"memory is a SimpleStore: give MemoryService\("),
        ({"memory_use": "always"}, r"memory_use is 'always'; it is one of 'tools', 'auto', 'both'"),
        ({"memory_use": ["tools"]}, r"memory_use is \['tools'\]"),
        ({"memory_use": "auto"}, r"memory_use='auto' needs a memory"),
        ({"checkpointer": "agent.db"}, r"checkpointer is a str: give a checkpointer"),
        ({"checkpointer": InMemoryCheckpointer}, r"checkpointer is the class InMemoryCheckpointer"),
        ({"max_steps": 0}, r"max_steps must be at least 1, not 0"),
    ],
)
def test_a_wrong_argument_is_named_with_the_right_one(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReActAgent(**{"model": EchoChatModel(), **arguments})


def test_a_memory_may_be_used_in_each_way(tmp_path: Path) -> None:
    memory = MemoryService(SimpleStore(tmp_path / "m.json"), ("ada",))
    for use in ("tools", "auto", "both"):
        assert ReActAgent(EchoChatModel(), memory=memory, memory_use=use).memory_use == use  # type: ignore[arg-type]
