"""Instructions of skills."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from jianmu.memory.context.providers.base import ContextProvider, Provided
from jianmu.memory.context.request import ContextRequest

__all__ = ["SkillLike", "SkillProvider"]


class SkillLike(Protocol):
    """What the provider needs of a skill; `jianmu.skills.Skill` has it."""

    @property
    def name(self) -> str:
        """The skill's name."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...

    @property
    def instructions(self) -> str:
        """How it is done."""
        ...


class SkillProvider(ContextProvider):
    """The instructions of the skills in use; part of the stable prefix and never dropped.

    Args:
        skills: One skill or several.
        detail: ``instructions``, or ``headline`` for name and description, where the model opens a skill
            by a tool of yours.
        name: Names the section.
    """

    def __init__(
        self,
        skills: SkillLike | Iterable[SkillLike],
        *,
        detail: Literal["instructions", "headline"] = "instructions",
        name: str = "skill",
    ) -> None:
        super().__init__(name, place="prefix", priority=90, required=True)
        self._skills = tuple(skills) if isinstance(skills, Iterable) else (skills,)
        self._full = detail == "instructions"

    def provide(self, request: ContextRequest) -> Provided:
        """Return the skills, each under its name."""
        if not self._full:
            lines = [f"- {s.name}: {' '.join(s.description.split())}" for s in self._skills]
            return "\n".join(["Skills that you can open:", *lines]) if lines else None
        parts = [f"# Skill: {s.name}\n{s.description}\n\n{s.instructions}".strip() for s in self._skills]
        return "\n\n".join(parts) or None
