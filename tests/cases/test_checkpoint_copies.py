"""T6 (29): what is saved is a copy, and what is loaded is another."""

import asyncio
from pathlib import Path

import pytest

from .checkpointers import ALL, openers


@pytest.mark.parametrize("kind", ALL)
def test_a_list_changed_after_the_save_or_the_load_changes_nothing_that_is_kept(
    tmp_path: Path, kind: str
) -> None:
    store = openers(tmp_path)[kind]()
    items = [1]
    store.save_checkpoint("t", 1, {"items": items})
    items.append(2)
    loaded = store.get_checkpoint("t")
    assert loaded["state"]["items"] == [1]
    loaded["state"]["items"].append(9)
    assert store.get_checkpoint("t")["state"]["items"] == [1]


@pytest.mark.parametrize("kind", ALL)
def test_history_never_shows_values_from_the_future(tmp_path: Path, kind: str) -> None:
    store = openers(tmp_path)[kind]()
    items: list[int] = []
    for step in range(1, 6):
        items.append(step)
        store.save_checkpoint("t", step, {"items": items})
    for step in range(1, 6):
        assert store.get_checkpoint("t", step=step)["state"]["items"] == list(range(1, step + 1))


@pytest.mark.parametrize("kind", ALL)
def test_two_threads_from_one_checkpoint_do_not_affect_each_other(tmp_path: Path, kind: str) -> None:
    store = openers(tmp_path)[kind]()
    store.save_checkpoint("t", 1, {"items": [1]}, None, {"deep": {"list": [1]}})
    store.fork_thread("t", "other")
    one, two = store.get_checkpoint("t"), store.get_checkpoint("other")
    one["state"]["items"].append(2)
    one["runtime_metadata"]["deep"]["list"].append(2)
    assert two["state"]["items"] == [1]
    store.save_checkpoint("t", 2, one["state"])
    assert store.get_checkpoint("other")["state"]["items"] == [1]
    assert store.get_checkpoint("other")["runtime_metadata"] == {"deep": {"list": [1]}}


@pytest.mark.parametrize("kind", ALL)
async def test_a_state_kept_by_the_loop_may_change_as_soon_as_the_save_returned(
    tmp_path: Path, kind: str
) -> None:
    store = openers(tmp_path)[kind]()
    items = [1]
    saving = asyncio.create_task(asyncio.to_thread(store.save_checkpoint, "t", 1, {"items": items}))
    await saving
    items.append(2)
    assert (await asyncio.to_thread(store.get_checkpoint, "t"))["state"]["items"] == [1]
