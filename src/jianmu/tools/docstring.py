"""What a function's docstring says of it and of each parameter, in Google's or reST's style."""

from __future__ import annotations

import inspect
import re

__all__ = ["described"]

_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Example|Examples|Note|Notes):\s*$"
)
_PARAMETER = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_REST = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


def described(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and the description of each parameter."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    text: list[str] = []
    parameters: dict[str, str] = {}
    section, current, indent = "", "", 0
    for line in lines:
        if match := _SECTION.match(line):
            section, current = match[1], ""
        elif match := _REST.match(line):
            section, current = "Args", match[1]
            parameters[current] = match[2]
            indent = 0
        elif line.startswith(":"):
            section, current = "Returns", ""
        elif not section:
            text.append(line)
        elif section in ("Args", "Arguments", "Parameters") and line.strip():
            depth = len(line) - len(line.lstrip())
            match = _PARAMETER.match(line)
            if match and (not current or depth <= indent):
                current, indent = match[1], depth
                parameters[current] = match[2]
            elif current:
                parameters[current] = f"{parameters[current]} {line.strip()}".strip()
    return "\n".join(text).strip(), parameters
