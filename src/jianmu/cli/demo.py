"""`jianmu demo`: kill an agent and watch it go on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    input: Annotated[
        Path | None,
        typer.Option(
            "--input", help="Your own chat: JSON lines of role, content and, optionally, time and name."
        ),
    ] = None,
    kills: Annotated[int, typer.Option(min=0, help="How often it is killed.")] = 3,
    seed: Annotated[
        int | None, typer.Option(help="Of the random moments; another each time by default.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Keep the demo's files in this new folder; removed by default.")
    ] = None,
    pace: Annotated[float, typer.Option(min=0, help="Seconds to read one turn.")] = 0.03,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Kill an agent at random moments and watch it go on where it was, then ask what it learned."""
    from rich.console import Console

    from jianmu.demo.command import play

    story = play(
        Console(), conversation=input, kills=kills, seed=seed, folder=folder, pace=pace, as_json=json
    )
    raise typer.Exit(0 if story.is_good else 1)
