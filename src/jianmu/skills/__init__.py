"""Folders of instructions that a model opens when it needs them."""

from __future__ import annotations

from jianmu.skills.skill import Skill

__all__ = ["Skill"]
