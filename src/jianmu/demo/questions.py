"""What the new thread asks, and the word by which a reader sees that the right memory came back."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from jianmu.demo.conversation import Fact

__all__ = ["OWN_QUESTIONS", "Question", "questions_about"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question and a piece of the memory that answers it."""

    text: str
    expected: str


OWN_QUESTIONS = (
    Question("What am I allergic to?", "peanuts"),
    Question("我的猫叫什么名字？", "麻薯"),
    Question("Where does my sister Clara live?", "Lisbon"),
    Question("牙医复诊是哪天？", "十一月十八号"),
    Question("When does my passport expire?", "9 April 2027"),
    Question("备用钥匙在谁家？", "陈阿姨"),
)

_WORD = re.compile(r"[A-Za-z]{4,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,6}")


def questions_about(facts: list[Fact], rng: random.Random, how_many: int = 5) -> list[Question]:
    """Make questions for a conversation nobody knows: each asks for the rarer words of one fact."""
    words = [set(_WORD.findall(fact.content.lower())) for fact in facts]
    often: dict[str, int] = {}
    for found in words:
        for word in found:
            often[word] = often.get(word, 0) + 1
    askable = [index for index, found in enumerate(words) if len(found) >= 3]
    chosen = sorted(rng.sample(askable, min(how_many, len(askable))))
    return [
        Question(
            " ".join(sorted(words[index], key=lambda word: (often[word], word))[:3]), facts[index].content
        )
        for index in chosen
    ]
