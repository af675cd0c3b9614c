"""Folders of instructions that a model opens when it needs them."""

from __future__ import annotations

from jianmu.skills.skill import Skill
from jianmu.skills.tools import SkillOpenTool, SkillReadTool, create_skill_tools

__all__ = ["Skill", "SkillOpenTool", "SkillReadTool", "create_skill_tools"]
