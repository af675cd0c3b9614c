"""Saves that wait for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jianmu.memory.checkpoint.base import PromptSaveCapable
from jianmu.testing.checkpointer.harness import CheckpointerHarness, close

__all__ = ["PromptSaveSuite"]


class PromptSaveSuite(CheckpointerHarness):
    """A prompt save is a save, or nothing at all.

    Attributes:
        saves_promptly: Whether the small deltas of this back end are expected to be saved promptly.
    """

    saves_promptly = False

    def test_a_prompt_save_is_a_whole_save_or_nothing(self, home: Path) -> None:
        store = self.make(home)
        prompt: object = store
        if not isinstance(prompt, PromptSaveCapable):
            pytest.skip(f"{type(store).__name__} saves nothing promptly")
        kept: dict[int, dict[str, Any]] = {}
        promptly = 0
        for step in range(1, 150):
            state = {"text": "汉" * 300, "items": list(range(step)), "big": "x" * (step // 100 * 40_000)}
            tree, metadata = {"0": "RUNNING"}, {"n": step}
            envelope = {"step": step, "state": state, "tree": tree, "runtime_metadata": metadata}
            if prompt.try_save_checkpoint("t", step, state, tree, metadata):
                promptly += 1
            else:
                assert store.get_checkpoint("t") == kept.get(step - 1)
                store.save_checkpoint("t", step, state, tree, metadata)
            kept[step] = envelope
            assert store.get_checkpoint("t") == envelope
        assert promptly > 50 or not self.saves_promptly
        close(store)
        assert self.make(home).get_checkpoint("t") == kept[149]
