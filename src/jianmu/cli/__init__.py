"""The command line: `jianmu COMMAND`; each command is one file."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the `jianmu` command."""
    from jianmu.cli.app import app  # so that importing the package builds nothing

    app()()
