"""Questions of leaves, and the answers that were given."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jianmu.codec import Codec
from jianmu.errors import UnknownQuestionError
from jianmu.runtime.result import Question
from jianmu.runtime.wake import Wake

__all__ = ["Questions"]

_REMEMBERED = 256
"""How many settled questions a thread remembers, so that the same answer again is no error."""


@dataclass(slots=True)
class _Open:
    """A question without an answer; `future` is there once its leaf of this process waits."""

    question: Question
    activation: int
    key: str
    payload: Any
    future: asyncio.Future[Any] | None = None


class Questions:
    """All questions of one run.

    A question's slot is ``path:activation:key``; its id adds the run, so that an answer meant for another
    run is not taken. An answer is first saved with a checkpoint and then delivered.

    Args:
        wake: Told of new questions and answers.
        on_ask: Called with each new question.
    """

    def __init__(self, wake: Wake, on_ask: Callable[[Question], None]) -> None:
        self._wake = wake
        self._on_ask = on_ask
        self._lock = threading.Lock()
        self._codec = Codec()
        self._prefix = ""
        self._open: dict[str, _Open] = {}
        self._answers: dict[str, Any] = {}
        self._settled: dict[str, str] = {}
        self._undelivered: list[str] = []
        self._closed = False
        self.fresh = False
        """Whether a question was asked since the last save."""

    def begin(self, run: str) -> None:
        """Start without any.

        Args:
            run: What ids begin with.
        """
        self._prefix = run
        self._open, self._answers, self._settled = {}, {}, {}

    def load(self, run: str, saved: Mapping[str, Any]) -> None:
        """Start with what `dump` gave."""
        self.begin(run)
        self._answers = dict(saved.get("answers", {}))
        self._settled = dict(saved.get("settled", {}))
        for each in saved.get("open", []):
            question = Question(each["id"], each["path"], self._codec.decode(each["payload"]))
            slot = _slot(each["path"], each["activation"], each["key"])
            self._open[slot] = _Open(question, each["activation"], each["key"], each["payload"])

    def dump(self) -> dict[str, Any]:
        """Return all as plain data."""
        with self._lock:
            return {
                "open": [
                    {
                        "id": each.question.id,
                        "path": each.question.path,
                        "activation": each.activation,
                        "key": each.key,
                        "payload": each.payload,
                    }
                    for each in self._open.values()
                ],
                "answers": dict(self._answers),
                "settled": dict(self._settled),
            }

    async def ask(self, path: str, activation: int, key: str, payload: Any) -> Any:
        """Return the answer, waiting for it if need be."""
        slot = _slot(path, activation, key)
        if slot in self._answers and slot not in self._undelivered:
            return self._codec.decode(self._answers[slot])
        question = Question(f"{self._prefix}:{slot}", path, payload)
        asked = _Open(question, activation, key, self._codec.encode(payload))
        asked.future = asyncio.get_running_loop().create_future()
        with self._lock:
            if slot not in self._undelivered:
                known = self._open.get(slot)
                self.fresh = self.fresh or known is None or known.payload != asked.payload
            self._open[slot] = asked
        self._on_ask(question)
        self._wake.add("question")
        try:
            return await asked.future
        finally:
            with self._lock:
                if self._open.get(slot) is asked and asked.future.cancelled() and not self._closed:
                    del self._open[slot]

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions without an answer."""
        with self._lock:
            return tuple(each.question for slot, each in self._open.items() if slot not in self._answers)

    @property
    def waiting(self) -> bool:
        """Whether a leaf of this process waits for an answer that nobody has given."""
        with self._lock:
            return any(
                each.future is not None and slot not in self._answers for slot, each in self._open.items()
            )

    def accept(self, question_id: str, value: Any) -> None:
        """Take an answer, from any thread.

        Raises:
            UnknownQuestionError: No such question is open, or it was answered differently.
            EncodeError: The answer cannot be saved.
        """
        plain = self._codec.encode(value)
        with self._lock:
            slot = self._slot_of(question_id)
            if self._was_given(question_id, slot, plain):
                return
            if self._closed or slot is None or slot not in self._open:
                raise UnknownQuestionError(
                    f"no open question {question_id!r}; open are: "
                    + (", ".join(repr(each.question.id) for each in self._open.values()) or "none")
                )
            self._answers[slot] = plain
            self._undelivered.append(slot)
        self._wake.add_from_any_thread("answer")

    def _slot_of(self, question_id: str) -> str | None:
        for slot, each in self._open.items():
            if question_id in (each.question.id, f"{self._prefix}:{slot}"):
                return slot
        slot = question_id.removeprefix(f"{self._prefix}:")
        return slot if slot != question_id and slot in self._answers else None

    def _was_given(self, question_id: str, slot: str | None, plain: Any) -> bool:
        if slot is not None and slot in self._answers:
            same = _digest(self._answers[slot]) == _digest(plain)
        elif question_id in self._settled:
            same = self._settled[question_id] == _digest(plain)
        else:
            return False
        if not same:
            raise UnknownQuestionError(
                f"question {question_id!r} is no longer open: it was answered differently"
            )
        return True

    @property
    def undelivered(self) -> bool:
        """Whether an answer waits to be saved and delivered."""
        return bool(self._undelivered)

    def deliver(self) -> list[str]:
        """Hand the saved answers to the leaves that wait; return the questions' ids."""
        with self._lock:
            slots, self._undelivered = self._undelivered, []
            answered = [(slot, self._open.pop(slot)) for slot in slots if slot in self._open]
        for slot, each in answered:
            if each.future is not None and not each.future.done():
                each.future.set_result(self._codec.decode(self._answers[slot]))
        return [each.question.id for _, each in answered]

    def settle(self, has_ended: Callable[[str, int], bool]) -> None:
        """Forget questions and answers of ended activations, but not that they were answered."""
        with self._lock:
            for slot in [slot for slot in self._open if _ended(slot, has_ended)]:
                del self._open[slot]
            for slot in [slot for slot in self._answers if _ended(slot, has_ended)]:
                self._settled[f"{self._prefix}:{slot}"] = _digest(self._answers.pop(slot))
            for question_id in list(self._settled)[:-_REMEMBERED]:
                del self._settled[question_id]

    def close(self, *, keep: bool) -> None:
        """Take no more answers.

        Args:
            keep: Whether what is open stays to be seen, as after a suspension.
        """
        with self._lock:
            self._closed = True
            if not keep:
                self._open = {}


def _slot(path: str, activation: int, key: str) -> str:
    return f"{path}:{activation}:{key}"


def _ended(slot: str, has_ended: Callable[[str, int], bool]) -> bool:
    path, activation, _ = slot.split(":", 2)
    return has_ended(path, int(activation))


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
