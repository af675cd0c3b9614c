"""The tools by which a model opens skills and reads their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jianmu.errors import ConfigError, ToolError
from jianmu.skills.skill import Skill
from jianmu.tools import Tool, ToolSet

__all__ = ["SkillOpenTool", "SkillReadTool", "create_skill_tools"]


class SkillOpenTool(Tool):
    """Gives a model the instructions of one skill and the names of its files.

    Args:
        skills: The skills that can be opened.
    """

    name = "skill_open"
    description = "Open a skill: returns its instructions and the files that belong to it."
    input_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The skill's name."}},
        "required": ["name"],
    }
    read_only = True

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = _by_name(skills)

    def run(self, *, name: str) -> str:  # type: ignore[override]
        """Return the instructions.

        Raises:
            ToolError: No skill has this name; the message lists those there are.
        """
        skill = _find(self._skills, name)
        files = skill.files()
        listed = f"\n\nFiles, to be read with skill_read: {', '.join(files)}" if files else ""
        return f"# {skill.name}\n\n{skill.instructions}{listed}"


class SkillReadTool(Tool):
    """Gives a model one file of a skill.

    Args:
        skills: The skills whose files can be read.
    """

    name = "skill_read"
    description = "Read a file of a skill that you opened."
    input_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The skill's name."},
            "path": {"type": "string", "description": "The file, as skill_open lists it."},
        },
        "required": ["name", "path"],
    }
    read_only = True

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = _by_name(skills)

    def run(self, *, name: str, path: str) -> str:  # type: ignore[override]
        """Return the file's text.

        Raises:
            ToolError: No skill has this name.
            SkillError: The path leaves the skill's folder, or no readable text is there.
        """
        return _find(self._skills, name).read(path)


def create_skill_tools(skills: Iterable[Skill]) -> ToolSet:
    """Return ``skill_open``, ``skill_read`` and the tools that the skills bring; nothing without skills."""
    several = list(skills)
    if not several:
        return ToolSet()
    return ToolSet([SkillOpenTool(several), SkillReadTool(several), *(skill.tools for skill in several)])


def _by_name(skills: Iterable[Skill]) -> dict[str, Skill]:
    named: dict[str, Skill] = {}
    for skill in skills:
        if skill.name in named:
            raise ConfigError(f"two skills are called {skill.name!r}")
        named[skill.name] = skill
    return named


def _find(skills: Mapping[str, Skill], name: str) -> Skill:
    skill = skills.get(name)
    if skill is None:
        raise ToolError(f"there is no skill {name!r}; there are: {', '.join(skills) or 'none'}")
    return skill
