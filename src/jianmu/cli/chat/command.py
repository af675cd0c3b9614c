"""`jianmu chat`: talk to a model that remembers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["chat"]


def chat(
    model: Annotated[str | None, typer.Option(help="The model's name; 'echo' needs no key.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="openai or anthropic; read off the model's name by default.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="The root of the model's server.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="The SQLite file of threads and memories.")] = None,
    thread: Annotated[str | None, typer.Option(help="The thread to talk on.")] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Whose memories these are, levels parted by /.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="tools (the model decides), auto (done for it) or both.")
    ] = None,
    system_prompt: Annotated[str | None, typer.Option(help="What the model is told first.")] = None,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Completions in one turn at most.")] = None,
    tools: Annotated[
        list[str] | None, typer.Option(help="Tools, as module:attribute; may be given several times.")
    ] = None,
    skills: Annotated[
        list[Path] | None, typer.Option(help="A folder of skills; may be given several times.")
    ] = None,
) -> None:
    """Talk to a model that remembers; kill it at any moment and the next start goes on."""
    from rich.console import Console

    from jianmu.cli.chat.session import ChatSession
    from jianmu.cli.chat.settings import HOW_TO_SET_A_MODEL, load_settings, make_model
    from jianmu.cli.chat.store import ChatStore
    from jianmu.cli.chat.toolbox import load_skills, load_tools

    flags = {
        "model": model,
        "provider": provider,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "file": file,
        "thread": thread,
        "namespace": namespace,
        "memory": memory,
        "system_prompt": system_prompt,
        "max_steps": max_steps,
        "tools": tools or None,
        "skills": skills or None,
    }
    settings = load_settings(flags)
    if not settings.model:
        typer.echo(HOW_TO_SET_A_MODEL, err=True, nl=False)
        raise typer.Exit(2)
    chosen = make_model(settings)
    with ChatStore(settings.file, settings.namespace) as store:
        ChatSession(
            settings,
            chosen,
            store,
            Console(highlight=False),
            tools=load_tools(settings.tools),
            skills=load_skills(settings.skills),
            interactive=sys.stdin.isatty(),
        ).loop()
