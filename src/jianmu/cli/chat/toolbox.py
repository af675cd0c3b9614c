"""The tools and skills that a chat is given by name."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from jianmu.errors import ConfigError
from jianmu.skills import Skill
from jianmu.tools import Tool, ToolSet

__all__ = ["load_skills", "load_tools"]


def load_tools(references: Iterable[str], *, folder: Path | None = None) -> ToolSet:
    """Import tools by ``module:attribute``.

    The attribute is a `Tool`, a `ToolSet`, a list of these, or a function without arguments that returns one.

    Args:
        references: What to import; importing a module runs it.
        folder: Where modules are found besides the installed ones; None = the current folder.

    Raises:
        ConfigError: A reference that names no tools; the message says which and why.
    """
    references = tuple(references)
    home = str(folder or Path.cwd())
    if references and home not in sys.path:
        sys.path.insert(0, home)
    return ToolSet(tool for reference in references for tool in _tools_of(reference, _found(reference)))


def load_skills(folders: Iterable[Path]) -> list[Skill]:
    """Return the skills in the folders directly below each of `folders`.

    Raises:
        SkillError: A folder or a SKILL.md that cannot be read.
        ConfigError: No skill is there, or two share a name.
    """
    skills: dict[str, Skill] = {}
    for folder in folders:
        found = Skill.discover(folder)
        if not found:
            raise ConfigError(f"skills {str(folder)!r}: no folder with a SKILL.md is directly below it")
        for skill in found:
            if skill.name in skills:
                raise ConfigError(
                    f"two skills are called {skill.name!r}: {skills[skill.name].path}, {skill.path}"
                )
            skills[skill.name] = skill
    return list(skills.values())


def _found(reference: str) -> Any:
    name, _, path = reference.partition(":")
    if not name or not path:
        raise ConfigError(f"tools {reference!r}: write module:attribute, e.g. my_tools:search")
    try:
        found: Any = import_module(name)
    except Exception as error:  # an import may raise anything
        raise ConfigError(
            f"tools {reference!r}: {name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"tools {reference!r}: {name} has no {path}")
        found = getattr(found, part)
    return found


def _tools_of(reference: str, found: Any) -> ToolSet:
    if not isinstance(found, Tool | ToolSet) and callable(found):
        try:
            found = found()
        except TypeError as error:
            raise ConfigError(
                f"tools {reference!r}: a plain function; decorate it with @tool ({error})"
            ) from error
    items = [found] if isinstance(found, Tool | ToolSet) else found
    if not isinstance(items, Iterable) or isinstance(items, str | bytes):
        raise ConfigError(
            f"tools {reference!r}: not a tool but {type(found).__name__}; decorate it with @tool"
        )
    items = list(items)
    for item in items:
        if not isinstance(item, Tool | ToolSet):
            raise ConfigError(
                f"tools {reference!r}: holds {type(item).__name__}, which is no tool; use @tool"
            )
    return ToolSet(items)
