"""Tools, skills and approvals of `jianmu chat`, in a real terminal and with real kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import pexpect

from jianmu.testing.provider_server import ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest

from .conftest import JIANMU
from .terminal import begin, leave, press_ctrl_c, say

Start = Callable[..., Any]

TOOLS = '''
from pathlib import Path
from jianmu.tools import tool

@tool(requires_approval=True)
def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    with Path("paid.txt").open("a") as file:
        file.write(f"{amount} {to}\\\\n")
    return f"paid {amount} to {to}"

@tool(read_only=True)
def rate() -> str:
    """Tell the rate."""
    return "1.1"

all_tools = [pay, rate]
'''

ASK = r"run it\? \[y/n, or say why not\] "


def brain(request: ProviderRequest) -> ProviderAnswer:
    """`pay TO AMOUNT ...` asks for that many calls, then says what they gave."""
    words = request.user_texts[-1].split()
    if words[0] != "pay":
        return ProviderAnswer(f"You said {' '.join(words)}.")
    asked = sum(len(text.split()[2:]) for text in request.user_texts if text.startswith("pay"))
    calls = tuple(("pay", {"amount": int(amount), "to": words[1]}) for amount in words[2:])
    if len(request.tool_results) < asked:
        return ProviderAnswer(tool_calls=calls)
    return ProviderAnswer("Result: " + "; ".join(text for _, text in request.tool_results[-len(calls) :]))


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(brain) as running:
        yield running


@pytest.fixture
def connect(start: Start, server: ProviderServer, tmp_path: Path) -> Callable[..., Any]:
    (tmp_path / "shop_tools.py").write_text(TOOLS.replace("\\\\n", "\\n"), encoding="utf-8")

    def run(*arguments: str, **environ: str) -> Any:
        given = arguments or ("--tools", "shop_tools:all_tools")
        model = ("--model", "m", "--base-url", server.openai_url)
        return start(*model, *given, OPENAI_API_KEY=server.api_key, **environ)

    return run


def paid(folder: Path) -> list[str]:
    file = folder / "paid.txt"
    return file.read_text("utf-8").splitlines() if file.exists() else []


def die(child: Any) -> None:
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.wait()


def test_an_approved_call_is_shown_exactly_and_runs_once(connect: Start, tmp_path: Path) -> None:
    child = connect()
    begin(child)
    child.sendline("pay Zoë\u202e 5")
    child.expect(ASK)
    for part in ("pay", '"amount": 5', '"to": "Zoë\\u202e"'):
        assert part in child.before
    assert paid(tmp_path) == []
    assert "Result: paid 5" in say(child, "y")
    leave(child)
    assert len(paid(tmp_path)) == 1


@pytest.mark.parametrize(("answer", "told"), [("n", "a person refused"), ("too much", "too much")])
def test_a_refused_call_never_runs_and_the_model_is_told(
    connect: Start, tmp_path: Path, answer: str, told: str
) -> None:
    child = connect()
    begin(child)
    child.sendline("pay Bob 5")
    child.expect(ASK)
    child.sendline("")
    child.expect(ASK)
    assert told in say(child, answer)
    assert "You said hi." in say(child, "hi")
    leave(child)
    assert paid(tmp_path) == []


def test_a_pending_approval_survives_kill_9_and_each_decision_is_kept(connect: Start, tmp_path: Path) -> None:
    child = connect()
    begin(child)
    child.sendline("pay Bob 1 2")
    child.expect(ASK)
    assert '"amount": 1' in child.before
    child.sendline("y")
    child.expect(ASK)
    assert '"amount": 2' in child.before
    die(child)
    assert paid(tmp_path) == []
    child = connect()
    child.expect("goes on now")
    child.expect(ASK)
    assert '"amount": 2' in child.before
    assert '"amount": 1' not in child.before
    die(child)
    child = connect()
    child.expect(ASK)
    assert "paid 1 to Bob" in say(child, "n")
    leave(child)
    assert paid(tmp_path) == ["1 Bob"]


def test_ctrl_c_leaves_the_decision_open_and_ctrl_d_leaves_the_chat(connect: Start, tmp_path: Path) -> None:
    child = connect()
    begin(child)
    child.sendline("pay Bob 5")
    child.expect(ASK)
    press_ctrl_c(child, "nothing was decided")
    child.expect("> ")
    child.sendline("hello")
    child.expect(ASK)
    press_ctrl_c(child, "your message was not sent")
    child.expect("> ")
    child.sendline("hello")
    child.expect(ASK)
    child.sendline("y")
    child.expect("paid 5 to Bob")
    child.expect("You said hello.")
    child.expect("> ")
    child.sendline("pay Eve 6")
    child.expect(ASK)
    child.sendeof()
    child.expect("the next start asks again")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert paid(tmp_path) == ["5 Bob"]


def test_without_a_terminal_it_says_what_to_do_and_takes_no_line_for_a_decision(
    connect: Start, server: ProviderServer, tmp_path: Path
) -> None:
    command = [*JIANMU, "chat", "--model", "m", "--base-url", server.openai_url, "--tools", "shop_tools:pay"]
    done = subprocess.run(
        command,
        input="pay Bob 5\ny\ny\n",
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": server.api_key},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    for part in ("pay", "approval", "terminal", "'main'"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert paid(tmp_path) == []
    child = connect()
    child.expect(ASK)
    assert "Result: paid 5" in say(child, "y")
    leave(child)
    assert paid(tmp_path) == ["5 Bob"]


def test_a_start_without_the_tool_does_not_lose_the_question(connect: Start, tmp_path: Path) -> None:
    child = connect()
    begin(child)
    child.sendline("pay Bob 5")
    child.expect(ASK)
    die(child)
    child = connect("--tools", "shop_tools:rate")
    child.expect("cut off at a call of pay")
    child.expect("> ")
    leave(child)
    child = connect()
    child.expect(ASK)
    assert "Result: paid 5" in say(child, "y")
    leave(child)


def test_tools_and_skills_come_from_the_file(connect: Start, server: ProviderServer, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "refunds"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: refunds\ndescription: How to refund.\n---\nLook first.\n")
    (tmp_path / "jianmu.toml").write_text(
        f'[chat]\nmodel = "m"\nbase_url = "{server.openai_url}"\ntools = ["shop_tools:all_tools"]\n'
        'skills = ["skills"]\n',
        encoding="utf-8",
    )
    child = connect("--thread", "other")
    begin(child)
    listed = say(child, "/tools")
    rows = {line.split()[0]: line for line in listed.splitlines() if line.split()}
    assert "yes" in rows["pay"]
    assert "yes" not in rows["rate"]
    assert "skill_open" in rows
    assert "memory_search" in rows
    say(child, "hi")
    leave(child)
    names = [tool["function"]["name"] for tool in server.calls()[0].body["tools"]]
    assert names == ["pay", "rate", "skill_open", "skill_read", "memory_search", "memory_add"]
    assert "refunds: How to refund." in str(server.calls()[0].body["messages"])


def test_forgetting_the_thread_forgets_the_open_question(connect: Start, tmp_path: Path) -> None:
    child = connect()
    begin(child)
    child.sendline("pay Bob 5")
    child.expect(ASK)
    press_ctrl_c(child, "nothing was decided")
    child.expect("> ")
    assert "forgot thread main" in say(child, "/forget thread")
    assert "You said hello." in say(child, "hello")
    leave(child)
    assert paid(tmp_path) == []


def test_a_second_chat_on_the_thread_is_told_and_decides_when_it_is_free(
    connect: Start, tmp_path: Path
) -> None:
    first = connect()
    begin(first)
    first.sendline("pay Bob 5")
    first.expect(ASK)
    second = connect()
    second.expect(ASK)
    assert "Result: paid 5" in say(second, "y")
    first.sendline("y")
    first.expect("> ")
    assert "You said hi." in say(first, "hi")
    leave(first)
    leave(second)
    assert paid(tmp_path) == ["5 Bob"]
