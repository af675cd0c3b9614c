"""What is saved comes back equal, of the same type, and as a copy."""

from __future__ import annotations

import copy
import json
import math
import operator
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from jianmu.errors import (
    JianmuError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    HistoryCapable,
)
from jianmu.state import StateManager
from jianmu.testing.checkpointer.harness import CheckpointerHarness

__all__ = ["RoundTripSuite"]

HARD_TEXTS = (
    "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh\r\ni\nj",
    "汉字😀 \x00 \x1f \x7f \ufeff \uffff",
    '"sum":"00000000"}',
    "\\u0000 \\ud800 \\\\ \\n",
    "",
    "' OR 1=1 --",
)
HARD_NUMBERS = (0, -1, 2**53 + 1, -(2**63) - 1, 2**80, 0.1, -0.0, 1e308, 5e-324, 1.0, True, False, None)


class Conversation(BaseModel):
    """A state as agents keep it."""

    messages: Annotated[list[dict[str, str]], operator.add] = Field(default_factory=list)
    profile: dict[str, Any] = Field(default_factory=dict)
    count: int = 0


class RoundTripSuite(CheckpointerHarness):
    """Saves and loads of every kind of plain data."""

    def test_a_new_thread_has_no_checkpoint(self, store: CheckpointerProtocol) -> None:
        assert store.get_checkpoint("nobody") is None

    def test_the_newest_envelope_comes_back_equal(self, store: CheckpointerProtocol, home: Path) -> None:
        store.save_checkpoint("t", 1, {"n": 1})
        store.save_checkpoint("t", 2, {"n": 2}, {"0": "RUNNING", "0/1": "SUCCESS"}, {"count": 7})
        expected = {
            "step": 2,
            "state": {"n": 2},
            "tree": {"0": "RUNNING", "0/1": "SUCCESS"},
            "runtime_metadata": {"count": 7},
        }
        assert store.get_checkpoint("t") == expected
        assert self.again(store, home).get_checkpoint("t") == expected

    def test_a_run_without_tree_or_metadata_has_none_and_an_empty_dict(
        self, store: CheckpointerProtocol
    ) -> None:
        store.save_checkpoint("t", 0, {})
        assert store.get_checkpoint("t") == {"step": 0, "state": {}, "tree": None, "runtime_metadata": {}}

    def test_arguments_go_by_their_names_too(self, store: CheckpointerProtocol) -> None:
        store.save_checkpoint(
            thread_id="t", step=1, state_dump={"n": 1}, tree_state={"0": "SUCCESS"}, runtime_metadata={"m": 1}
        )
        envelope = store.get_checkpoint("t")
        assert envelope["tree"] == {"0": "SUCCESS"}
        assert envelope["runtime_metadata"] == {"m": 1}

    def test_hard_texts_and_numbers_come_back_equal_and_of_the_same_type(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        state = {
            "texts": list(HARD_TEXTS),
            "keys": {text: index for index, text in enumerate(HARD_TEXTS)},
            "numbers": list(HARD_NUMBERS),
            "nested": {"a": [[], {}, [{"b": [None]}]]},
        }
        store.save_checkpoint("t", 1, state, {"0": "RUNNING"}, copy.deepcopy(state))
        for reader in (store, self.again(store, home)):
            envelope = reader.get_checkpoint("t")
            assert exact(envelope["state"]) == exact(state)
            assert exact(envelope["runtime_metadata"]) == exact(state)

    def test_infinities_and_nan_come_back_as_they_were(self, store: CheckpointerProtocol, home: Path) -> None:
        store.save_checkpoint("t", 1, {"floats": [math.inf, -math.inf, math.nan]})
        high, low, nan = self.again(store, home).get_checkpoint("t")["state"]["floats"]
        assert (high, low) == (math.inf, -math.inf)
        assert math.isnan(nan)

    def test_keys_named_like_the_envelope_and_the_back_end_are_just_data(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        state = {
            key: {key: key} for key in ("step", "state", "tree", "thread", "format", "time", "sum", "id")
        }
        store.save_checkpoint("t", 1, state, None, state)
        envelope = self.again(store, home).get_checkpoint("t")
        assert envelope == {"step": 1, "state": state, "tree": None, "runtime_metadata": state}

    def test_a_state_that_shrinks_changes_kind_and_grows_again_comes_back(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        states: list[dict[str, Any]] = [
            {"a": [1, 2, 3], "b": {"x": 1, "y": {"z": []}}},
            {"a": [1, 2, 3, 4], "b": {"x": 1, "y": {"z": [1]}}},
            {"a": [1], "b": {"x": 1}},
            {"a": {"now": "a dict"}, "b": [1]},
            {"a": None},
            {},
            {"a": [True], "b": 0},
            {"a": [1], "b": 0.0},
            {"a": [1.0], "b": -0.0},
        ]
        for step, state in enumerate(states):
            store.save_checkpoint("t", step, state, {str(step): "RUNNING"}, {"step": step})
            for reader in (store, self.again(store, home)):
                envelope = reader.get_checkpoint("t")
                assert exact(envelope["state"]) == exact(state)
                assert envelope["tree"] == {str(step): "RUNNING"}
                assert envelope["runtime_metadata"] == {"step": step}

    def test_the_dumps_of_a_state_manager_come_back_as_their_plain_data(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        manager = StateManager(Conversation)
        manager.initialize({"messages": [{"text": "汉字\u2028"}]})
        expected: list[str] = []
        for step in range(40):
            update: dict[str, Any] = {"messages": [{"text": f"message {step}"}] * (step % 3)}
            if step % 5 == 0:
                update["profile"] = {"seen": step, "tags": {"a", "b"}}
            if step == 30:
                update["count"] = 2**70
            manager.update(update)
            dump = manager.dump_checkpoint()
            expected.append(exact(dict(dump)))
            store.save_checkpoint("t", step, dump, {"0": "RUNNING"})
            del dump
            assert exact(store.get_checkpoint("t")["state"]) == expected[-1]
        reader = self.again(store, home)
        assert exact(reader.get_checkpoint("t")["state"]) == expected[-1]
        if isinstance(reader, HistoryCapable):
            for step in (0, 1, 17, 30, 39):
                envelope = reader.get_checkpoint("t", step=step)
                assert envelope is not None
                assert exact(envelope["state"]) == expected[step]

    def test_dumps_and_plain_dicts_may_follow_each_other(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        manager = StateManager(Conversation)
        manager.initialize()
        for step in range(12):
            manager.update({"messages": [{"text": str(step)}]})
            dump = manager.dump_checkpoint()
            state: dict[str, Any] = dump if step % 3 else {**dict(dump), "extra": step}
            store.save_checkpoint("t", step, state)
            reader = store if step % 2 else self.again(store, home)
            assert exact(reader.get_checkpoint("t")["state"]) == exact(dict(state))

    def test_deep_nesting_is_kept_or_refused_and_the_last_good_step_stays(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        store.save_checkpoint("t", 1, {"n": 1})
        for depth in (50, 150, 240, 400, 3000):
            state = {"deep": nested(depth)}
            before = store.get_checkpoint("t")
            try:
                store.save_checkpoint("t", depth, state)
            except JianmuError:
                assert self.again(store, home).get_checkpoint("t") == before
            else:
                assert depth_of(self.again(store, home).get_checkpoint("t")["state"]["deep"]) == depth

    def test_a_value_that_cannot_be_stored_is_an_error_and_the_last_good_step_stays(
        self, store: CheckpointerProtocol, home: Path
    ) -> None:
        if not self.durable:
            pytest.skip("a store in memory can hold any value")
        store.save_checkpoint("t", 1, {"n": 1})
        loop: list[Any] = []
        loop.append(loop)
        for bad in (object(), loop, threading_lock(), 1j):
            with pytest.raises(JianmuError):
                store.save_checkpoint("t", 2, {"ok": 1, "bad": bad})
            assert self.again(store, home).get_checkpoint("t")["state"] == {"n": 1}
        store.save_checkpoint("t", 2, {"n": 2})
        assert self.again(store, home).get_checkpoint("t")["state"] == {"n": 2}

    def test_what_is_changed_after_a_save_does_not_change_what_was_saved(
        self, store: CheckpointerProtocol
    ) -> None:
        state: dict[str, Any] = {"items": [1]}
        tree, metadata = {"0": "RUNNING"}, {"deep": {"list": [1]}}
        store.save_checkpoint("t", 1, state, tree, metadata)
        state["items"].append(2)
        tree["0"] = "FAILURE"
        metadata["deep"]["list"].append(2)
        envelope = store.get_checkpoint("t")
        assert envelope["state"] == {"items": [1]}
        assert envelope["tree"] == {"0": "RUNNING"}
        assert envelope["runtime_metadata"] == {"deep": {"list": [1]}}

    def test_what_is_changed_after_a_load_does_not_change_what_was_saved(
        self, store: CheckpointerProtocol
    ) -> None:
        store.save_checkpoint("t", 1, {"items": [1]}, {"0": "RUNNING"}, {"m": {"list": [1]}})
        first, second = store.get_checkpoint("t"), store.get_checkpoint("t")
        first["state"]["items"].append(9)
        first["tree"]["0"] = "FAILURE"
        first["runtime_metadata"]["m"]["list"].append(9)
        assert second["state"] == {"items": [1]}
        assert store.get_checkpoint("t") == second
        store.save_checkpoint("t", 2, {"items": [1, 2]}, {"0": "RUNNING"}, {"m": {"list": [1]}})
        assert store.get_checkpoint("t")["state"] == {"items": [1, 2]}


def exact(value: Any) -> str:
    """Return a text that tells 1 from 1.0 and True."""
    return json.dumps(value, sort_keys=True)


def nested(depth: int) -> list[Any]:
    """Return lists in lists."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def depth_of(value: list[Any]) -> int:
    """Return how many lists are in each other."""
    depth = 1
    while value:
        value = value[0]
        depth += 1
    return depth


def threading_lock() -> object:
    """Return something that no format can hold."""
    return threading.Lock()
