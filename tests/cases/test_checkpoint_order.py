"""T2 (11): the system clock steps back between saves."""

from pathlib import Path

import pytest

from .checkpointers import ALL, openers


@pytest.mark.parametrize("kind", ALL)
def test_the_newest_is_the_last_saved_when_the_clock_steps_back(tmp_path: Path, kind: str) -> None:
    moments = iter([1000.0, 999.5, 999.5])
    open_store = openers(tmp_path, lambda: next(moments, 0.0))[kind]
    for n in (1, 2, 3):
        open_store().save_checkpoint("t", n, {"n": n})
    store = open_store()
    assert store.get_checkpoint("t")["state"]["n"] == 3
    history = [
        store.get_checkpoint("t", step=info.step)["state"]["n"] for info in store.list_checkpoints("t")
    ]
    assert history[::-1] == [1, 2, 3]
