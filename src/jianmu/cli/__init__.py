"""The command line."""

from __future__ import annotations

import typer

__all__ = ["main"]


def main() -> None:
    """Run the `jianmu` command."""
    app = typer.Typer(help="Agents that keep their place and their knowledge.", no_args_is_help=True)
    app()
