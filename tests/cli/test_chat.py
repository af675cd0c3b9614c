"""`jianmu chat` in a real terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import pexpect

from jianmu.cli.chat.shown import shown
from jianmu.testing.provider_server import ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest

from .terminal import begin, leave, press_ctrl_c, say

Start = Callable[..., Any]


def test_what_is_told_is_found_again_after_a_restart(start: Start) -> None:
    child = start("--model", "echo")
    assert "thread main" in begin(child)
    assert "memory_add" in say(child, "我最喜欢的茶是龙井")
    leave(child)
    child = start("--model", "echo")
    assert "going on with thread main: 4 messages" in begin(child)
    assert "龙井" in say(child, "我最喜欢什么茶？")
    leave(child)


def test_threads_fork_and_share_the_memory(start: Start) -> None:
    child = start("--model", "echo")
    begin(child)
    say(child, "Tea is green.")
    assert "now on thread main-2" in say(child, "/fork")
    assert "now on thread other" in say(child, "/threads other")
    assert "green" in say(child, "What is green?")
    listed = say(child, "/threads")
    assert [name in listed for name in ("main", "main-2", "* other")] == [True] * 3
    assert "forgot thread other" in say(child, "/forget thread")
    leave(child)


def test_a_memory_can_be_seen_and_forgotten(start: Start) -> None:
    child = start("--model", "echo")
    begin(child)
    say(child, "The code is 4711.")
    listed = say(child, "/memory")
    assert "4711" in listed
    (row,) = [line for line in listed.splitlines() if "4711" in line]
    assert "forgotten" in say(child, f"/forget {row.split()[0]}")
    assert "nothing is remembered" in say(child, "/memory")
    say(child, "The code is 4712.")
    assert "4712" in say(child, "/memory code")
    assert "forgot 1" in say(child, "/forget all")
    leave(child)


def test_without_a_model_it_says_how_to_set_one(start: Start) -> None:
    child = start()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2
    for part in ("--model echo", "OPENAI_API_KEY", "jianmu.toml", "JIANMU_CHAT_MODEL"):
        assert part in child.before


def test_a_missing_key_is_named(start: Start) -> None:
    child = start("--model", "gpt-x")
    child.expect(pexpect.EOF)
    assert "OPENAI_API_KEY" in child.before


def test_ctrl_c_at_the_prompt_stays_and_ctrl_d_leaves(start: Start) -> None:
    child = start("--model", "echo")
    begin(child)
    press_ctrl_c(child, "the thread is saved")
    child.expect("> ")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def brain(request: ProviderRequest) -> ProviderAnswer:
    if request.user_texts[-1] == "long":
        return ProviderAnswer("word " * 200 + "END")
    return ProviderAnswer(f"You said {request.user_texts[-1]}.")


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(brain, delay=0.01) as running:
        yield running


def connect(start: Start, server: ProviderServer, **environ: str) -> Any:
    return start("--model", "m", "--base-url", server.openai_url, OPENAI_API_KEY=server.api_key, **environ)


def test_ctrl_c_stops_an_answer_and_the_talk_goes_on(start: Start, server: ProviderServer) -> None:
    child = connect(start, server)
    begin(child)
    child.sendline("long")
    child.expect("word word")
    child.sendintr()
    child.expect("interrupted")
    child.expect("> ")
    assert "You said short." in say(child, "short")
    leave(child)


def test_kill_9_in_mid_answer_goes_on_at_the_next_start(
    start: Start, server: ProviderServer, tmp_path: Path
) -> None:
    child = connect(start, server)
    begin(child)
    assert "You said first." in say(child, "first")
    child.sendline("long")
    child.expect("word word")
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.wait()
    child = connect(start, server)
    child.expect("the last turn was cut off and goes on now")
    child.expect("END")
    child.expect("> ")
    assert "You said last." in say(child, "last")
    leave(child)
    keys = [call.key for call in server.calls()]
    assert keys[1] == keys[2]
    assert len(set(keys)) == 3
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert server.api_key.encode() not in path.read_bytes()


def test_settings_come_from_the_file_and_the_environment(
    start: Start, server: ProviderServer, tmp_path: Path
) -> None:
    (tmp_path / "jianmu.toml").write_text(
        f'[chat]\nmodel = "m"\nbase_url = "{server.openai_url}"\napi_key_env = "MY_KEY"\nthread = "toml"\n',
        encoding="utf-8",
    )
    child = start(MY_KEY=server.api_key, JIANMU_CHAT_THREAD="env")
    assert "thread env" in begin(child)
    assert "You said hi." in say(child, "hi")
    leave(child)
    assert server.calls()[0].outcome == "done"


def test_a_wrong_setting_is_named(start: Start, tmp_path: Path) -> None:
    (tmp_path / "jianmu.toml").write_text('[chat]\nmodle = "m"\n', encoding="utf-8")
    child = start()
    child.expect(pexpect.EOF)
    assert "modle" in child.before
    assert "base_url" in child.before


def test_a_model_cannot_steer_the_terminal() -> None:
    assert shown("a\x1b[2Jb\x07c\nd\te [bold]") == "a[2Jbc\nd\te \\[bold]"


def test_ctrl_c_pressed_twice_does_not_end_the_chat(tmp_path: Path) -> None:
    from rich.console import Console

    from jianmu.agents import EchoChatModel
    from jianmu.cli.chat.session import ChatSession
    from jianmu.cli.chat.settings import ChatSettings
    from jianmu.cli.chat.store import ChatStore

    presses = iter([KeyboardInterrupt(), KeyboardInterrupt(), "Tea is green.", "/quit"])

    def read(prompt: str) -> str:
        press = next(presses)
        if isinstance(press, KeyboardInterrupt):
            raise press
        return press

    class PressedAgain(Console):
        def print(self, *objects: Any, **kwargs: Any) -> None:
            super().print(*objects, **kwargs)
            if "Ctrl-D leaves" in str(objects):
                raise KeyboardInterrupt

    with (tmp_path / "out.txt").open("w") as out, ChatStore(tmp_path / "chat.db", "chat") as store:
        ChatSession(ChatSettings(), EchoChatModel(), store, PressedAgain(file=out), read).loop()
    assert "memory_add" in (tmp_path / "out.txt").read_text()
    assert next(presses, None) is None
