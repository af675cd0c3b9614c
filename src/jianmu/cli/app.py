"""The commands together, and what becomes of an error: one line, never a traceback of ours."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from jianmu import __version__
from jianmu.cli.chat.command import chat
from jianmu.cli.demo import demo
from jianmu.errors import JianmuError

__all__ = ["app"]


class _Group(TyperGroup):
    """Shows the package's own errors as one line and exits with 2; all others are faults and stay visible."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except JianmuError as error:
            typer.secho(f"jianmu: {error}", err=True, fg=typer.colors.RED)
            sys.exit(2)


def app() -> typer.Typer:
    """Return the command line application."""
    commands = typer.Typer(
        cls=_Group,
        help="Agents that keep their place and their knowledge.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    @commands.callback()
    def jianmu(
        version: bool = typer.Option(
            False, "--version", help="Show the version and exit.", callback=_version
        ),
    ) -> None:
        """Agents that keep their place and their knowledge."""

    commands.command()(chat)
    commands.command()(demo)
    return commands


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jianmu {__version__}")
        raise typer.Exit
