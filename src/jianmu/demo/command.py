"""One demo, shown on a console or as JSON."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from jianmu.demo.parent import Demo
from jianmu.demo.story import Story
from jianmu.demo.view import Screen, Silence, conclusion, introduction
from jianmu.errors import ConfigError

__all__ = ["play"]


def play(
    console: Console,
    *,
    conversation: Path | None = None,
    kills: int = 3,
    seed: int | None = None,
    folder: Path | None = None,
    pace: float = 0.03,
    as_json: bool = False,
) -> Story:
    """Play one demo.

    Args:
        console: Where it is shown.
        conversation: A file of turns; None is the package's own.
        kills: How often the learner is killed.
        seed: Of the random moments.
        folder: Where its files stay; None is a temporary folder that is removed.
        pace: Seconds to read a turn.
        as_json: Print one JSON object instead.
    """
    with _folder(folder) as place:
        if as_json:
            story = Demo(place, Silence(), conversation=conversation, kills=kills, seed=seed, pace=pace).run()
            console.print_json(json.dumps(story.as_dict(), ensure_ascii=False))
            return story
        demo = Demo(place, Silence(), conversation=conversation, kills=kills, seed=seed, pace=pace)
        console.print(introduction(demo.story, kills))
        with Screen(console, demo.tree, len(demo.turns)) as screen:
            demo.watcher = screen
            story = demo.run()
        console.print(conclusion(story))
        console.print(f"{story.seconds:.1f} s" + (f"; files in {folder}" if folder else ""))
    return story


@contextlib.contextmanager
def _folder(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="jianmu-demo-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty: give the demo a new folder")
    yield folder
