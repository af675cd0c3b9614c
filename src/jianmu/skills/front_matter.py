"""The YAML head of a SKILL.md file, between two ``---`` lines.

The form is that of https://agentskills.io/specification: `name` and `description` are needed, everything
else is kept as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from jianmu.errors import MissingExtraError, SkillError

__all__ = ["FrontMatter", "parse_front_matter"]

_FENCE = re.compile(r"\A---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)(?P<body>.*)\Z", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[\w.-]{1,64}\Z")
_LONGEST_DESCRIPTION = 1024
_LONGEST_HEAD = 65536


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the head says.

    Attributes:
        name: 1 to 64 letters, digits, ``-``, ``_`` or ``.``, of any script.
        description: 1 to 1024 characters; what a model reads to decide whether to open the skill.
        extra: Every other key.
        body: The text after the head.
    """

    name: str
    description: str
    extra: dict[str, Any]
    body: str


def parse_front_matter(text: str, source: str) -> FrontMatter:
    """Split the text of a SKILL.md into its head and body.

    Args:
        text: The whole file.
        source: The file's name for error messages.

    Raises:
        SkillError: No head, no mapping in it, or a needed key is missing or not text.
    """
    match = _FENCE.match(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if match is None:
        raise SkillError(f"{source}: must start with a '---' line, YAML with name and description, and '---'")
    fields = _load_yaml(match["head"], source)
    name = _text(fields, "name", source)
    if not _NAME.match(name):
        raise SkillError(f"{source}: name {name!r} must be 1 to 64 letters, digits, '-', '_' or '.'")
    description = _text(fields, "description", source)
    if len(description) > _LONGEST_DESCRIPTION:
        raise SkillError(
            f"{source}: description has {len(description)} characters, at most {_LONGEST_DESCRIPTION} fit; "
            "move the rest below the head"
        )
    extra = {key: value for key, value in fields.items() if key not in ("name", "description")}
    return FrontMatter(name, description, extra, match["body"].strip())


def _load_yaml(head: str, source: str) -> dict[str, Any]:
    if len(head) > _LONGEST_HEAD:
        raise SkillError(f"{source}: the head has {len(head)} characters, at most {_LONGEST_HEAD} are read")
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("Reading a SKILL.md", "skills") from error
    try:
        fields = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SkillError(f"{source}: the head is no YAML: {error}") from error
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise SkillError(f"{source}: the head must be 'key: value' lines")
    return fields


def _text(fields: dict[str, Any], key: str, source: str) -> str:
    value = fields.get(key)
    if value is None:
        raise SkillError(f"{source}: the head needs '{key}: ...'")
    if not isinstance(value, str) or not value.strip():
        raise SkillError(
            f"{source}: {key} must be non-empty text, not {type(value).__name__}; put it in quotes"
        )
    return value.strip()
