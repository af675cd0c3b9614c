"""The command line as a whole."""

import os
import subprocess
import sys

import typer

from jianmu import __version__
from jianmu.cli.app import app


def jianmu(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    code = "from jianmu.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_every_command_and_option_has_a_help() -> None:
    group = typer.main.get_command(app())
    commands = group.commands  # type: ignore[attr-defined]
    assert {"demo"} <= set(commands)
    for name, command in commands.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_the_version_is_shown() -> None:
    assert jianmu("--version").stdout.decode().strip() == f"jianmu {__version__}"


def test_output_is_utf8_whatever_the_code_page() -> None:
    done = jianmu("demo", "--kills", "0", "--pace", "0", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr.decode()
    assert "麻薯" in done.stdout.decode("utf-8")


def test_a_folder_in_use_is_refused(tmp_path: object) -> None:
    done = jianmu("demo", "--folder", str(tmp_path), "--kills", "0", "--pace", "0")
    assert done.returncode == 0
    again = jianmu("demo", "--folder", str(tmp_path), "--kills", "0", "--pace", "0")
    assert again.returncode == 2
    assert "not empty" in again.stderr.decode()
