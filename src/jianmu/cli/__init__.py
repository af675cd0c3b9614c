"""The command line: `jianmu COMMAND`; each command is one file."""

from __future__ import annotations

import io
import sys

__all__ = ["main"]


def main() -> None:
    """Run the `jianmu` command; its output is UTF-8 whatever the system's code page."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    from jianmu.cli.app import app  # so that importing the package builds nothing

    app()()
