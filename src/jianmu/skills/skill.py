"""A skill: a folder with a SKILL.md that a model reads only when it needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jianmu.errors import SkillError
from jianmu.skills.folder import SkillFolder
from jianmu.skills.front_matter import FrontMatter, parse_front_matter
from jianmu.tools import Tool, ToolSet

__all__ = ["Skill"]

_FILE = "SKILL.md"


class Skill:
    """Instructions in a folder, disclosed in three steps.

    1. `name` and `description`: always in the prompt, a line each (`headline`).
    2. `instructions`: the body of SKILL.md, once the model opens the skill.
    3. `read(path)`: any other file of the folder, when the instructions point to it.

    The folder is read when a step is asked for, so an edit is seen at the next use.

    Args:
        folder: The folder that holds SKILL.md.
        tools: Tools that its instructions speak of.

    Raises:
        SkillError: The folder or its SKILL.md cannot be read; the message says what is missing.
    """

    def __init__(self, folder: Path | str, *, tools: Iterable[Tool | ToolSet] = ()) -> None:
        self._folder = SkillFolder(folder)
        head = self._parse()
        self.name = head.name
        self.description = head.description
        self.metadata: Mapping[str, Any] = head.extra
        self.tools = ToolSet(tools)

    @classmethod
    def discover(cls, root: Path | str) -> list[Skill]:
        """Return the skills in the folders directly below `root`, sorted by name.

        Raises:
            SkillError: `root` is no folder, a SKILL.md cannot be read, or two skills share a name.
        """
        base = SkillFolder(root).root
        skills = [
            cls(path)
            for path in sorted(base.iterdir())
            if path.is_dir() and not path.is_symlink() and (path / _FILE).exists()
        ]
        names = [skill.name for skill in skills]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SkillError(f"{root}: more than one skill is named {', '.join(twice)}")
        return sorted(skills, key=lambda skill: skill.name)

    @property
    def path(self) -> Path:
        """The folder, absolute and without symlinks."""
        return self._folder.root

    @property
    def headline(self) -> str:
        """Name and description on one line, for the list of skills in a prompt."""
        return f"{self.name}: {' '.join(self.description.split())}"

    @property
    def instructions(self) -> str:
        """The body of SKILL.md, without its head."""
        return self._parse().body

    def files(self) -> list[str]:
        """Return the paths of the other files, relative to the folder, sorted."""
        return [path for path in self._folder.files() if path != _FILE]

    def read(self, path: str) -> str:
        """Return the text of one file of the folder.

        Raises:
            SkillError: The path leaves the folder, or no readable UTF-8 file is there.
        """
        return self._folder.read(path)

    def _parse(self) -> FrontMatter:
        return parse_front_matter(self._folder.read(_FILE), str(self._folder.root / _FILE))

    def __repr__(self) -> str:
        return f"Skill({self.name!r}, {str(self.path)!r})"
