"""Random histories against a plain model of what a checkpointer keeps."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from jianmu.memory.checkpoint.base import CheckpointerProtocol, HistoryCapable
from jianmu.testing.checkpointer.harness import CheckpointerHarness

__all__ = ["ModelSuite"]

_THREADS = ("a", "b", "Ä/b")
_KEYS = ("items", "profile", "n", "é.k", "")


class ModelSuite(CheckpointerHarness):
    """Saves, forks, truncations, prunes, deletions and reopenings in random order.

    Attributes:
        rounds: How many histories are tried.
        moves: How many calls each one has.
    """

    rounds = 5
    moves = 60

    def test_random_histories_are_what_a_plain_model_says(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        for seed in range(self.rounds):
            dice = random.Random(seed)  # noqa: S311 - dice for a test
            history = self.history(self.again(store, home) if seed else store)
            for thread_id in history.list_threads():
                history.delete_thread(thread_id)
            model: dict[str, list[dict[str, Any]]] = {}
            for move in range(self.moves):
                where = f"seed {seed}, move {move}"
                if dice.random() < 0.1:
                    history = self.history(self.again(store, home))
                self.move(dice, history, model)
                self.compare(dice, history, model, where)

    def move(
        self, dice: random.Random, history: HistoryCapable, model: dict[str, list[dict[str, Any]]]
    ) -> None:
        """Do one thing to both."""
        thread_id = dice.choice(_THREADS)
        saved = model.get(thread_id, [])
        kind = dice.random()
        if not saved or kind < 0.75:
            self.save(dice, history, model, thread_id)
        elif kind < 0.82:
            new = dice.choice([each for each in _THREADS if each != thread_id])
            history.delete_thread(new)
            end = dice.randrange(len(saved))
            history.fork_thread(thread_id, new, step=saved[end]["step"])
            model[new] = saved[: end + 1]
        elif kind < 0.88:
            end = dice.randrange(len(saved))
            assert history.truncate_thread(thread_id, step=saved[end]["step"]) == len(saved) - end - 1
            model[thread_id] = saved[: end + 1]
        elif kind < 0.95:
            keep = dice.randint(1, 6)
            assert history.prune(thread_id, keep_last=keep) == max(0, len(saved) - keep)
            model[thread_id] = saved[-keep:]
        else:
            assert history.delete_thread(thread_id) is True
            del model[thread_id]

    def save(
        self,
        dice: random.Random,
        history: HistoryCapable,
        model: dict[str, list[dict[str, Any]]],
        thread_id: str,
    ) -> None:
        """Save a changed state."""
        saved = model.get(thread_id, [])
        before = saved[-1] if saved else {"step": -1, "state": {}, "tree": None, "runtime_metadata": {}}
        state = json.loads(json.dumps(before["state"]))
        for _ in range(dice.randint(0, 3)):
            change(dice, state)
        envelope = {
            "step": before["step"] + dice.randint(1, 3),
            "state": state,
            "tree": dice.choice([before["tree"], None, {}, {"0": dice.choice(["RUNNING", "SUCCESS"])}]),
            "runtime_metadata": dice.choice([before["runtime_metadata"], {}, {"at": [dice.randint(0, 9)]}]),
        }
        assert isinstance(history, CheckpointerProtocol)
        history.save_checkpoint(
            thread_id, envelope["step"], state, envelope["tree"], envelope["runtime_metadata"]
        )
        model[thread_id] = [*saved, json.loads(json.dumps(envelope))]

    def compare(
        self,
        dice: random.Random,
        history: HistoryCapable,
        model: dict[str, list[dict[str, Any]]],
        where: str,
    ) -> None:
        """Compare all that can be asked."""
        assert history.list_threads() == sorted(model), where
        for thread_id in _THREADS:
            saved = model.get(thread_id, [])
            newest = history.get_checkpoint(thread_id)
            assert json.dumps(newest, sort_keys=True) == json.dumps(
                saved[-1] if saved else None, sort_keys=True
            ), where
            steps = [info.step for info in history.list_checkpoints(thread_id)]
            assert steps == [envelope["step"] for envelope in reversed(saved)], where
            if saved:
                expected = dice.choice(saved)
                found = history.get_checkpoint(thread_id, step=expected["step"])
                assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True), where


def change(dice: random.Random, state: dict[str, Any]) -> None:
    """Change one thing in a state."""
    key = dice.choice(_KEYS)
    value: Any = dice.choice(
        [None, True, 1, 1.0, -0.0, "汉字\u2028", [], {}, [1, [2]], {"x": {"y": [0]}}, dice.randint(0, 9)]
    )
    old = state.get(key)
    kind = dice.random()
    if isinstance(old, list) and kind < 0.5:
        old.append(value)
    elif isinstance(old, dict) and kind < 0.5:
        old[dice.choice(_KEYS)] = value
    elif old is not None and kind < 0.6:
        del state[key]
    else:
        state[key] = value
