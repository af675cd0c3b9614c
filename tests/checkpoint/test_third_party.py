"""A back end that somebody else wrote passes the contract in five lines, with only the two methods."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jianmu.memory.checkpoint import extract_checkpoint_payload, make_checkpoint_envelope
from jianmu.memory.checkpoint.arguments import check_step, check_thread_id
from jianmu.memory.checkpoint.base import CheckpointerProtocol, HistoryCapable
from jianmu.memory.checkpoint.plain import encode_plain
from jianmu.testing import CheckpointerContract


class DictCheckpointer:
    """Keeps the newest envelope of each thread as text in a dict that its maker owns."""

    def __init__(self, shelf: dict[str, bytes]) -> None:
        self._shelf = shelf

    def save_checkpoint(
        self,
        thread_id: str,
        step: int,
        state_dump: Mapping[str, Any],
        tree_state: Mapping[str, str] | None = None,
        runtime_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        check_thread_id(thread_id)
        check_step(step)
        envelope = make_checkpoint_envelope(step, state_dump, tree_state, runtime_metadata)
        self._shelf[thread_id] = encode_plain(envelope)

    def get_checkpoint(self, thread_id: str) -> dict[str, Any] | None:
        check_thread_id(thread_id)
        text = self._shelf.get(thread_id)
        return None if text is None else extract_checkpoint_payload(json.loads(text))


class TestDictCheckpointer(CheckpointerContract):
    shelves: dict[Path, dict[str, bytes]] = {}  # noqa: RUF012 - one shelf for each home

    def make(self, home: Path) -> DictCheckpointer:
        return DictCheckpointer(self.shelves.setdefault(home, {}))


def test_two_methods_are_a_checkpointer_without_history() -> None:
    store = DictCheckpointer({})
    assert isinstance(store, CheckpointerProtocol)
    assert not isinstance(store, HistoryCapable)
