"""A model opens a skill, reads its files, and gets nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from jianmu.agents import ReActAgent
from jianmu.errors import ConfigError
from jianmu.memory.context import ContextBuilder
from jianmu.messages import ToolCall
from jianmu.skills import Skill, create_skill_tools
from jianmu.testing import ScriptedChatModel
from jianmu.tools import tool


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"refunded {order}"


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    folder = tmp_path / "refund"
    folder.mkdir()
    text = "---\nname: refunds\ndescription: How to refund.\n---\nRead policy.md, then call refund."
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    (folder / "policy.md").write_text("三十天内可退", encoding="utf-8")
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    return Skill(folder, tools=[refund])


def test_opening_a_skill_gives_its_instructions_and_files(skill: Skill) -> None:
    tools = create_skill_tools([skill])
    assert tools.names == ["skill_open", "skill_read", "refund"]
    opened = tools.call("skill_open", {"name": "refunds"})
    assert "Read policy.md" in opened.content
    assert opened.content.endswith("policy.md")
    assert tools.call("skill_read", {"name": "refunds", "path": "policy.md"}).content == "三十天内可退"


def test_a_model_cannot_leave_the_folder_or_open_what_is_not_there(skill: Skill) -> None:
    tools = create_skill_tools([skill])
    for arguments in ({"name": "refunds", "path": "../secret"}, {"name": "other", "path": "x"}):
        result = tools.call("skill_read", arguments)
        assert result.is_error
        assert "key" not in result.content
    assert "refunds" in tools.call("skill_open", {"name": "other"}).content


def test_two_skills_of_one_name_are_refused(skill: Skill) -> None:
    with pytest.raises(ConfigError, match="refunds"):
        create_skill_tools([skill, Skill(skill.path)])


async def test_an_agent_is_told_the_headline_and_opens_the_rest(skill: Skill) -> None:
    calls = [
        ToolCall(id="1", name="skill_open", arguments={"name": "refunds"}),
        ToolCall(id="2", name="skill_read", arguments={"name": "refunds", "path": "policy.md"}),
        ToolCall(id="3", name="refund", arguments={"order": "A"}),
    ]
    model = ScriptedChatModel([*calls, "done"])
    result = await ReActAgent(model, skills=[skill]).run("refund A")
    first = "\n".join(message.text for message in model.requests[0].messages)
    assert "refunds: How to refund." in first
    assert "Read policy.md" not in first
    assert [m.text for m in result.messages if m.role == "tool"][1:] == ["三十天内可退", "refunded A"]


async def test_a_context_for_one_skill_has_its_instructions(skill: Skill) -> None:
    model = ScriptedChatModel(["ok"])
    agent = ReActAgent(model, tools=skill.tools, context=ContextBuilder.for_skill(skill, "Be kind."))
    await agent.run("refund A")
    assert any("Read policy.md" in message.text for message in model.requests[0].messages)
    assert model.requests[0].tool_names == ("refund",)
