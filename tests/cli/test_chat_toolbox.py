"""What `--tools` and `--skills` take, and what a wrong one says."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from jianmu.cli.chat.approvals import exact
from jianmu.cli.chat.session import ChatSession
from jianmu.cli.chat.settings import ChatSettings, load_settings
from jianmu.cli.chat.store import ChatStore
from jianmu.cli.chat.toolbox import load_skills, load_tools
from jianmu.errors import ConfigError
from jianmu.messages import ToolCall
from jianmu.testing import ScriptedChatModel

MODULE = '''
from jianmu.tools import ToolSet, tool

@tool
def one() -> str:
    """One."""
    return "1"

@tool
def two() -> str:
    """Two."""
    return "2"

def plain(x: int) -> int:
    return x

class Box:
    tools = [two]

def make():
    return ToolSet([one, two])

number = 3
mixed = [one, plain]
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolbox_sample.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "toolbox_broken.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "toolbox_sample", raising=False)


@pytest.mark.parametrize(
    ("references", "names"),
    [
        (["toolbox_sample:one"], ["one"]),
        (["toolbox_sample:one", "toolbox_sample:Box.tools"], ["one", "two"]),
        (["toolbox_sample:make"], ["one", "two"]),
        ([], []),
    ],
)
def test_a_tool_a_list_or_a_function_that_makes_them(
    tmp_path: Path, references: list[str], names: list[str]
) -> None:
    assert load_tools(references, folder=tmp_path).names == names


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("toolbox_sample", "module:attribute"),
        ("toolbox_missing:one", "ModuleNotFoundError"),
        ("toolbox_broken:one", "ZeroDivisionError"),
        ("toolbox_sample:three", "has no three"),
        ("toolbox_sample:plain", "decorate it with @tool"),
        ("toolbox_sample:number", "not a tool but int"),
        ("toolbox_sample:mixed", "holds function"),
    ],
)
def test_a_wrong_reference_is_named_with_the_reason(tmp_path: Path, reference: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_tools([reference], folder=tmp_path)
    assert reference in str(caught.value)


def test_a_folder_without_skills_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty.*SKILL\.md"):
        load_skills([tmp_path / "empty"])


def test_tools_and_skills_in_the_environment_are_lists(tmp_path: Path) -> None:
    import os

    environ = {"JIANMU_CHAT_TOOLS": "a:b, c:d", "JIANMU_CHAT_SKILLS": f"x{os.pathsep}y"}
    settings = load_settings({}, environ=environ, folder=tmp_path)
    assert settings.tools == ("a:b", "c:d")
    assert settings.skills == (Path("x"), Path("y"))


def test_nothing_in_a_call_that_is_shown_can_hide() -> None:
    shown = exact({"text": "a\u202eb\x1b[2J\u200bc\nd", "n": 1})
    assert '"a\\u202eb\\u001b[2J\\u200bc\\nd"' in shown
    assert "龙井" in exact({"茶": "龙井"})


def test_nothing_that_a_model_sends_reaches_the_terminal_raw(tmp_path: Path) -> None:
    evil = "x\x1b]0;pwned\x07\x1b[2J\u202e"
    model = ScriptedChatModel([[ToolCall(id="1", name=evil, arguments={evil: evil})], evil])
    lines = iter(["hi"])
    out = io.StringIO()

    def read(_: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    with ChatStore(tmp_path / "c.db", "chat") as store:
        console = Console(file=out, force_terminal=True, width=200)
        ChatSession(ChatSettings(), model, store, console, read).loop()
    shown = out.getvalue()
    assert "x]0;pwned" in shown
    for hidden in ("\x1b]0", "\x1b[2J", "\x07", "\u202e"):
        assert hidden not in shown
