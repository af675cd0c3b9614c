"""Every code block of the README and the docs runs as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("README*.md"), ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def runnable(page: Path) -> list[str]:
    """The blocks fenced as ``python``; one that needs a key or a server is fenced as ``py``."""
    return BLOCK.findall(page.read_text("utf-8"))


@pytest.mark.parametrize(
    "page", [p for p in PAGES if runnable(p)], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_the_code_on_this_page_runs(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(runnable(page)), "utf-8")
    folder = tmp_path / "work"
    folder.mkdir()
    run = subprocess.run(
        [sys.executable, "-X", "utf8", str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_local_link_on_this_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_exists_in_both_languages() -> None:
    english = {p.name for p in ROOT.glob("docs/*.md")}
    chinese = {p.name for p in ROOT.glob("docs/zh/*.md")}
    assert english == chinese
