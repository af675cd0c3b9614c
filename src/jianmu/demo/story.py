"""What happened in a demo, as data: for the screen, for ``--json``, and for tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from jianmu.demo.effects import EffectCounts
from jianmu.memory.long_term.rendering import NO_RESULTS

__all__ = ["Answer", "Death", "Story"]


@dataclass(slots=True)
class Death:
    """One SIGKILL.

    Attributes:
        process: Which process, from 1.
        step: The newest saved step when it died.
        tick: The same as a tick of this process, from 1.
        turn: The turn it was at.
        running: The names of the leaves that were RUNNING.
        resumed_step: The first step the next process saved.
        was_over: The run had just finished, and the next process found nothing to do.
    """

    process: int
    step: int
    tick: int
    turn: int
    running: list[str]
    resumed_step: int | None = None
    was_over: bool = False

    @property
    def went_on_exactly(self) -> bool:
        """Whether the next process went on at the very next step, or had nothing left to do."""
        return self.was_over or self.resumed_step == self.step + 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What memory said to a question; `is_expected` says whether the fact it asks for came first."""

    question: str
    text: str
    is_expected: bool


@dataclass(slots=True)
class Story:
    """A whole demo."""

    turns: int
    facts: int
    deaths: list[Death] = field(default_factory=list)
    last_step: int = 0
    effects: EffectCounts = field(default_factory=EffectCounts)
    memories: int = 0
    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_exactly_once(self) -> bool:
        """Whether each fact was noted and stored exactly once."""
        return self.effects.lines == self.effects.distinct_keys == self.memories == self.facts

    @property
    def is_good(self) -> bool:
        """Whether everything the demo claims came true."""
        return (
            self.is_exactly_once
            and all(death.went_on_exactly for death in self.deaths)
            and all(answer.text != NO_RESULTS for answer in self.answers)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {**asdict(self), "exactly_once": self.is_exactly_once, "good": self.is_good}
