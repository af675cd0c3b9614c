"""The README's first program does what the README prints."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent.parent / "README.md").read_text("utf-8")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL, and no shell that says Killed")
def test_the_first_program_dies_and_goes_on_as_printed(tmp_path: Path) -> None:
    [program] = re.findall(r"^```py\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    [printed] = re.findall(r"^```console\n(\$ python trip\.py.*?)^```$", README, re.DOTALL | re.MULTILINE)
    (tmp_path / "trip.py").write_text(program, "utf-8")
    shown = ""
    for command in re.findall(r"^\$ python (.*)$", printed, re.MULTILINE):
        run = subprocess.run(
            [sys.executable, "-W", "error", *command.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        killed = run.returncode == -signal.SIGKILL
        assert killed == ("--die" in command), run.stderr
        shown += f"$ python {command}\n{run.stdout}" + ("Killed\n" if killed else "")
    assert shown == printed


def test_the_readme_can_be_read_in_a_minute_and_names_no_registry() -> None:
    assert len(README.splitlines()) < 110
    assert "pip install jianmu" not in README
    assert "pypi" not in README.lower()
