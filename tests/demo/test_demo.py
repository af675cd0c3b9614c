"""The demo itself: real processes, real kills."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.demo.conversation import all_facts, facts_of, read_conversation
from jianmu.demo.effects import EffectFile
from jianmu.demo.parent import Demo
from jianmu.demo.story import Death
from jianmu.demo.view import Silence
from jianmu.errors import ConfigError, RunError


def test_the_packages_own_conversation_is_bilingual_and_of_several_days() -> None:
    turns = read_conversation()
    assert len(turns) >= 60
    assert len({turn.day for turn in turns}) >= 3
    texts = [fact.content for fact in all_facts(turns)]
    assert sum("\u4e00" <= char <= "\u9fff" for text in texts for char in text) > 100
    assert sum(text.isascii() for text in texts) > 10


def test_a_killed_demo_goes_on_at_the_very_next_step_and_repeats_nothing(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo", Silence(), kills=2, seed=5, pace=0.005)
    story = demo.run()
    assert len(story.deaths) == 2
    assert all(death.resumed_step == death.step + 1 for death in story.deaths)
    assert story.effects.lines == story.effects.distinct_keys == story.memories == story.facts > 30
    assert [answer.question for answer in story.answers if not answer.is_expected] == []
    assert story.is_good


def test_the_command_prints_one_json_object_for_a_users_own_chat(tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    lines = [
        {
            "role": "user",
            "content": f"My favourite number{n} is {n * n}. 我最喜欢的数字是第{n}个。",
            "time": "2026-01-02",
        }
        for n in range(8)
    ]
    chat.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    command = [sys.executable, "-c", "from jianmu.cli import main; main()", "demo", "--input", str(chat)]
    done = subprocess.run(
        [*command, "--kills", "1", "--seed", "1", "--pace", "0.01", "--json"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    story = json.loads(done.stdout)
    assert (story["turns"], story["facts"], len(story["deaths"])) == (8, 16, 1)
    assert story["exactly_once"] is True


@pytest.mark.parametrize("seed", range(3))
def test_a_learner_killed_at_its_very_end_does_not_begin_anew(tmp_path: Path, seed: int) -> None:
    chat = tmp_path / "chat.jsonl"
    line = '{"role": "user", "content": "The number of this turn is %d."}'
    chat.write_text("\n".join(line % number for number in range(3)), encoding="utf-8")
    demo = Demo(tmp_path / "demo", Silence(), conversation=chat, kills=1, seed=seed, pace=0)
    story = demo.run()
    assert story.effects.lines == story.facts == 3
    assert all(death.went_on_exactly for death in story.deaths)


def test_a_process_that_finds_the_run_finished_does_nothing(tmp_path: Path) -> None:
    first = Demo(tmp_path / "demo", Silence(), kills=0, pace=0).run()
    again = Demo(tmp_path / "demo", Silence(), kills=0, pace=0)
    again.story.deaths.append(Death(1, first.last_step, first.last_step, first.turns, []))
    story = again.run()
    assert [death.was_over for death in story.deaths] == [True]
    assert (story.last_step, story.effects) == (first.last_step, first.effects)
    assert story.is_good


def test_without_a_terminal_it_is_plain_text_for_a_newcomer(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from jianmu.cli import main; main()",
        "demo",
        "--kills",
        "1",
        "--pace",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    text = done.stdout.decode("utf-8")
    assert done.returncode == 0, text + done.stderr.decode()
    assert "\x1b[" not in text
    for shown in (
        "SIGKILL",
        "goes on from it",
        "every effect exactly once",
        "different idempotency keys",
        "Lisbon",
    ):
        assert shown in text


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "no turns"),
        ("{", "turn 1: no JSON"),
        ('{"role": "user", "content": "a"}\n{"role": "user"}', "turn 2"),
        ('{"role": "user", "content": "a", "time": "soon"}', "ISO 8601"),
        ("[1]", "turn 1"),
    ],
)
def test_a_file_that_is_no_chat_is_named(tmp_path: Path, content: str, named: str) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=named):
        read_conversation(path)


def test_a_wrong_file_is_one_line_on_the_command_line(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from jianmu.cli import main; main()",
        "demo",
        "--input",
        str(tmp_path / "none"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_effect_file_refuses_a_key_it_has_and_counts_it(tmp_path: Path) -> None:
    effects = EffectFile(tmp_path / "e.jsonl")
    assert effects.append("a", {"n": 1}) is True
    assert effects.append("a", {"n": 2}) is False
    again = EffectFile(tmp_path / "e.jsonl")
    assert again.append("a", {"n": 3}) is False
    assert again.append("b", {"n": 4}) is True
    counts = again.counts()
    assert (counts.lines, counts.distinct_keys, counts.refused) == (2, 2, 2)


def test_a_learner_that_fails_by_itself_is_an_error_with_its_words(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo", Silence(), kills=0, pace=0)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "memory.json").write_text("{broken", encoding="utf-8")
    with pytest.raises(RunError, match="ended"):
        demo.run()


@given(st.text())
def test_facts_are_taken_from_any_text(text: str) -> None:
    path_turn = read_conversation()[0]
    turn = type(path_turn)(1, "user", text, "", True)
    for fact in facts_of(turn):
        assert fact.content.startswith("user: ")
        assert fact.content.removeprefix("user: ") in text
