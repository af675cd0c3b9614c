"""The process that starts the learner, kills it at random moments, starts it again, and asks at the end."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from jianmu import ReactiveRunner, StateManager
from jianmu.demo.conversation import Turn, all_facts, read_conversation
from jianmu.demo.place import ANSWERING, NAMESPACE, Place
from jianmu.demo.questions import OWN_QUESTIONS, Question, questions_about
from jianmu.demo.story import Answer, Death, Story
from jianmu.demo.tree import Answers, answering_tree, learning_tree, walk
from jianmu.errors import RunError

__all__ = ["Demo", "Watcher"]


class Watcher(Protocol):
    """Who shows what happens; called in order, from one thread."""

    def started(self, process: int, pid: int, saved_step: int | None) -> None:
        """A learner started; `saved_step` is where it goes on, None at the very first."""

    def changed(self, turn: int, step: int, statuses: dict[str, str]) -> None:
        """The learner moved; `statuses` are the nodes' by index path."""

    def died(self, death: Death, statuses: dict[str, str]) -> None:
        """The learner was killed."""

    def asking(self) -> None:
        """Learning is done and the new thread begins."""


class Demo:
    """One demo from beginning to end.

    Args:
        folder: Where its files go; must be empty or not exist.
        conversation: A file of turns; None is the package's own.
        kills: How often the learner is killed.
        seed: Of the random moments; None is another each time.
        pace: Seconds to read a turn.
        watcher: Who shows it.
    """

    def __init__(
        self,
        folder: Path,
        watcher: Watcher,
        *,
        conversation: Path | None = None,
        kills: int = 3,
        seed: int | None = None,
        pace: float = 0.03,
    ) -> None:
        self.turns: list[Turn] = read_conversation(conversation)
        self._conversation = conversation
        self._place = Place(folder)
        self._errors = folder / "learner.err"
        self.watcher = watcher
        self._random = random.Random(seed)  # noqa: S311 - moments of a demo, not secrets
        self._pace = pace
        moments = range(2, max(3, len(self.turns)))
        self._kill_at = sorted(self._random.sample(moments, min(kills, len(moments))))
        self.tree = learning_tree(self.turns, self._place.tools()[1], self._place.notebook(), pace)
        self.leaves = {path: node.name for path, node in walk(self.tree) if not node.children}
        self.story = Story(len(self.turns), sum(1 for _ in all_facts(self.turns)))

    def run(self) -> Story:
        """Play it; return what happened.

        Raises:
            RunError: A learner ended otherwise than by its end or by the kill.
        """
        started = time.monotonic()
        self._place.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        process = 1
        while not self._learn(process):
            process += 1
        self.story.effects = self._place.notebook().counts()
        self.story.memories = len(self._place.store().list(NAMESPACE))
        self.watcher.asking()
        self.story.answers = self._ask()
        self.story.seconds = time.monotonic() - started
        return self.story

    def _learn(self, process: int) -> bool:
        """Let one process learn; True when it came to the end, False when it was killed."""
        saved = self._place.saved()
        statuses: dict[str, str] = dict(saved["tree"] or {}) if saved else {}
        turn, step = (int(saved["state"]["turn"]), int(saved["step"])) if saved else (0, 0)
        first_step = step
        is_first_save = bool(self.story.deaths)
        with self._process() as child:
            self.watcher.started(process, child.pid, step if saved else None)
            for event in _events(child):
                kind = event["type"]
                if kind == "node.status":
                    statuses[event["path"]] = event["status"]
                elif kind == "demo.turn":
                    turn = event["turn"]
                elif kind == "checkpoint.saved":
                    step = event["step"]
                    if is_first_save:
                        self.story.deaths[-1].resumed_step, is_first_save = step, False
                    self.watcher.changed(turn, step, statuses)
                elif kind == "ended":
                    if event["status"] != "SUCCESS":
                        raise RunError(
                            f"the learner ended in {event['status']}: {'; '.join(event['errors'])}"
                        )
                    if is_first_save:
                        self.story.deaths[-1].was_over = event["step"] == step
                    self.story.last_step = event["step"]
                    self.watcher.changed(turn, event["step"], statuses)
                    return True
                if self._kill_at and turn >= self._kill_at[0] and not is_first_save:
                    self._kill(child)
                    return self._bury(process, first_step)
            raise RunError(f"the learner ended by itself (exit code {child.wait()}): {self._last_words()}")

    def _kill(self, child: subprocess.Popen[str]) -> None:
        """Wait a random moment, so that it may be anywhere between two events, and kill."""
        self._kill_at.pop(0)
        time.sleep(self._random.uniform(0, max(self._pace, 0.02)))
        child.kill()  # SIGKILL; on Windows TerminateProcess
        child.wait()

    def _bury(self, process: int, first_step: int) -> bool:
        saved = self._place.saved()
        statuses: dict[str, str] = dict(saved["tree"] or {}) if saved else {}
        turn, step = (int(saved["state"]["turn"]), int(saved["step"])) if saved else (0, 0)
        running = [name for path, name in self.leaves.items() if statuses.get(path) == "RUNNING"]
        death = Death(process, step, step - first_step, turn, running)
        self.story.deaths.append(death)
        self.watcher.died(death, statuses)
        return False

    @contextmanager
    def _process(self) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "jianmu.demo.worker", str(self._place.folder), str(self._pace)]
        if self._conversation is not None:
            command.append(str(self._conversation))
        with (
            self._errors.open("wb") as errors,
            subprocess.Popen(  # noqa: S603 - this package's own module
                command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
            ) as child,
        ):
            try:
                yield child
            finally:
                if child.poll() is None:
                    _end(child)

    def _last_words(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace").strip()[-2000:] or "it said nothing"

    def _ask(self) -> list[Answer]:
        """Let a new thread answer, from memory alone."""
        questions = self._questions()
        search, _ = self._place.tools()
        checkpointer = self._place.checkpointer()
        try:
            runner = ReactiveRunner(
                answering_tree([q.text for q in questions], search), StateManager(Answers)
            )
            result = runner.run_sync(checkpointer=checkpointer, thread_id=ANSWERING)
        finally:
            checkpointer.close()
        return [
            Answer(question.text, text, question.expected in text)
            for question, text in zip(questions, result.state.texts, strict=True)
        ]

    def _questions(self) -> list[Question]:
        if self._conversation is None:
            return list(OWN_QUESTIONS)
        return questions_about(list(all_facts(self.turns)), self._random)


def _events(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    for line in child.stdout:
        yield json.loads(line)


def _end(child: subprocess.Popen[str]) -> None:
    """Give a learner that has said its last word a moment to leave, then make it."""
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
