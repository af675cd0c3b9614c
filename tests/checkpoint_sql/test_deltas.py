"""A save costs what changed, and a writer that has not seen what others did cannot spoil a thread."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from jianmu import StateManager
from jianmu.codec.delta import apply_changes
from jianmu.errors import CheckpointCorruptError, CheckpointExistsError, EncodeError
from jianmu.memory.checkpoint.content import Content, from_text
from tests.checkpoint_sql.conftest import Backend


class Chat(BaseModel):
    messages: Annotated[list[str], operator.add] = []
    mood: str = "calm"


def sizes(store: Any) -> list[int]:
    return [info.size for info in reversed(store.list_checkpoints("t"))]


def test_a_long_chat_is_stored_in_three_times_its_size_and_a_step_costs_its_change(backend: Backend) -> None:
    store, manager = backend.open(), StateManager(Chat)
    manager.initialize()
    for step in range(500):
        manager.update({"messages": [f"{step} " + "x" * 400]})
        store.save_checkpoint("t", step, manager.dump_checkpoint(), {"0": "RUNNING"}, {"ticks": step})
    state = sum(len(each) + 3 for each in manager.get().messages)
    assert sum(sizes(store)) < 3.6 * state
    assert sum(size < 600 for size in sizes(store)) > 480
    assert store.get_checkpoint("t")["state"]["messages"] == manager.get().messages
    assert backend.open().get_checkpoint("t", step=250)["state"]["messages"] == manager.get().messages[:251]


def test_a_plain_dict_costs_its_change_too_and_may_be_mutated(backend: Backend) -> None:
    store = backend.open()
    state: dict[str, Any] = {"messages": [], "big": {"text": "x" * 50_000, "n": 0}}
    for step in range(20):
        state["messages"].append({"n": step})
        state["big"]["n"] = step
        store.save_checkpoint("t", step, state)
    assert max(sizes(store)[1:]) < 200
    assert store.get_checkpoint("t", step=7)["state"]["messages"] == [{"n": n} for n in range(8)]


def test_a_reopened_store_goes_on_with_deltas(backend: Backend) -> None:
    state: dict[str, Any] = {"text": "x" * 10_000, "items": [1]}
    backend.open().save_checkpoint("t", 1, state)
    state["items"].append(2)
    backend.open().save_checkpoint("t", 2, state)
    assert sizes(backend.open())[1] < 200


def test_a_thread_dropped_from_memory_is_read_again(backend: Backend) -> None:
    store = backend.open(cache_bytes=0)
    for step in range(5):
        for thread in ("a", "b"):
            store.save_checkpoint(thread, step, {"items": [thread] * step, "text": "x" * 1000})
    assert [info.size < 300 for info in store.list_checkpoints("a")] == [True] * 4 + [False]
    assert store.get_checkpoint("b")["state"]["items"] == ["b"] * 4


def test_a_writer_that_missed_a_truncation_does_not_continue_what_is_gone(backend: Backend) -> None:
    stale, other = backend.open(), backend.open()
    base: dict[str, Any] = {"text": "x" * 1000}
    stale.save_checkpoint("t", 1, base | {"items": ["a"]})
    stale.save_checkpoint("t", 2, base | {"items": ["a", "stale"]})
    other.truncate_thread("t", step=1)
    other.save_checkpoint("t", 2, base | {"items": ["a", "other"]})
    stale.save_checkpoint("t", 3, base | {"items": ["a", "stale", "more"]})
    assert backend.open().get_checkpoint("t")["state"]["items"] == ["a", "stale", "more"]
    assert backend.open().get_checkpoint("t", step=2)["state"]["items"] == ["a", "other"]


def test_a_writer_that_missed_a_deletion_starts_the_thread_anew(backend: Backend) -> None:
    stale, other = backend.open(), backend.open()
    stale.save_checkpoint("t", 1, {"items": ["old"]})
    other.delete_thread("t")
    other.save_checkpoint("t", 1, {"items": ["new"]})
    stale.save_checkpoint("t", 2, {"items": ["old", "late"]})
    assert backend.open().get_checkpoint("t")["state"]["items"] == ["old", "late"]
    other.delete_thread("t")
    stale.save_checkpoint("t", 1, {"items": []})
    assert other.get_checkpoint("t")["state"] == {"items": []}


def test_writers_in_turn_never_mix_their_states(backend: Backend) -> None:
    stores = [backend.open(), backend.open()]
    for step in range(30):
        items = [step] * (step % 5)
        stores[step % 2].save_checkpoint("t", step, {"items": items, "by": step % 2})
    for step in range(30):
        expected = {"items": [step] * (step % 5), "by": step % 2}
        assert stores[0].get_checkpoint("t", step=step)["state"] == expected
    with pytest.raises(CheckpointExistsError, match="step 29"):
        stores[0].save_checkpoint("t", 29, {})


@pytest.mark.parametrize("change", ["missing", "moved", "newest"])
def test_a_row_that_is_missing_or_exchanged_is_an_error_that_names_it(backend: Backend, change: str) -> None:
    store = backend.open()
    for step in range(1, 6):
        store.save_checkpoint("t", step, {"text": "x" * 1000, "items": list(range(step))})
    if change == "missing":
        backend.sql("DELETE FROM jianmu_step WHERE step = 4")
    elif change == "moved":
        (other,) = backend.sql("SELECT body FROM jianmu_step WHERE step = 3")
        backend.sql("UPDATE jianmu_step SET body = ? WHERE step = 5", other[0])
    else:
        backend.sql("DELETE FROM jianmu_step WHERE step = 5")
    with pytest.raises(CheckpointCorruptError, match="'t', step 5") as caught:
        backend.open().get_checkpoint("t")
    assert caught.value.step == 5
    assert caught.value.previous_step == (3 if change == "missing" else 4)
    with pytest.raises(CheckpointCorruptError):
        backend.open().save_checkpoint("t", 6, {})
    assert caught.value.previous_step is not None
    store.truncate_thread("t", step=caught.value.previous_step)
    store.save_checkpoint("t", 6, {"went": "on"})
    assert backend.open().get_checkpoint("t")["state"] == {"went": "on"}


def test_a_damaged_snapshot_offers_the_step_before_it(backend: Backend) -> None:
    store = backend.open()
    for step in range(1, 4):
        store.save_checkpoint("t", step, {"text": str(step) * 1000})
    backend.sql("UPDATE jianmu_step SET sum = sum + 1 WHERE step = 3")
    with pytest.raises(CheckpointCorruptError, match=r"step 3.*step before it, 2") as caught:
        store.get_checkpoint("t")
    assert caught.value.previous_step == 2


def test_pruning_in_the_middle_keeps_both_sides_readable(backend: Backend) -> None:
    now = [0.0]
    store = backend.open(clock=lambda: now[0])
    for step in range(10):
        now[0] = 5.0 if step in (3, 4, 7) else 50.0
        store.save_checkpoint("t", step, {"text": "x" * 2000, "items": list(range(step))})
    from datetime import UTC, datetime

    assert store.prune("t", older_than=datetime.fromtimestamp(10, UTC)) == 3
    for reader in (store, backend.open()):
        kept = [info.step for info in reader.list_checkpoints("t")]
        assert kept == [9, 8, 6, 5, 2, 1, 0]
        for step in kept:
            assert reader.get_checkpoint("t", step=step)["state"]["items"] == list(range(step))


def test_half_a_surrogate_pair_and_nul_come_back_in_state_and_id(backend: Backend) -> None:
    store = backend.open()
    state = {"text": "a\ud800b\x00", "list": ["\udfff", "ok"], "\ud801": {"k\x00": [1]}}
    for step in (1, 2):
        store.save_checkpoint("t\ud800\x00", step, state, {"0": "RUNNING"}, {"m": ["\ud800"] * step})
    found = backend.open().get_checkpoint("t\ud800\x00")
    assert found is not None
    assert found["state"] == state
    assert found["runtime_metadata"] == {"m": ["\ud800"] * 2}


@pytest.mark.parametrize(
    "value", [(1,), {1: 2}, {1}, b"x", 1 + 2j, [{"a": (1,)}], {"deep": [[{1: 2}]]}, 2**20_000], ids=type
)
def test_what_json_would_alter_is_refused_by_its_place(backend: Backend, value: Any) -> None:
    store = backend.open()
    store.save_checkpoint("t", 1, {"field": [1]})
    with pytest.raises(EncodeError, match="field"):
        store.save_checkpoint("t", 2, {"field": value})
    with pytest.raises(EncodeError, match="field"):
        store.save_checkpoint("t", 2, {"field": [1, value]})
    assert store.get_checkpoint("t")["state"] == {"field": [1]}


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "\ud800"]), inner, max_size=4)
    ),
    max_leaves=12,
)
states = st.dictionaries(st.sampled_from(["a", "b", "list", "x"]), plain, max_size=4)


def exact(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, exact(item)) for key, item in value.items()]
    return [exact(item) for item in value] if isinstance(value, list) else (type(value), repr(value))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(states, st.booleans()), min_size=2, max_size=6))
def test_the_changes_between_any_two_states_lead_from_one_to_the_other_in_order_and_type(
    steps: list[tuple[dict[str, Any], bool]],
) -> None:
    """Some steps only add to a list, as a chat does."""
    state: dict[str, Any] = {}
    content = Content({}, None, None)
    rebuilt = from_text(content.snapshot()[0])
    for drawn, grows in steps:
        before = state.get("list")
        items = before if isinstance(before, list) else []
        state = {**state, "list": [*items, drawn]} if grows else drawn
        following = Content(state, {"0": "RUNNING"}, {"m": drawn}, content)
        rebuilt = apply_changes(rebuilt, from_text(following.changes_from(content)))
        assert exact(rebuilt) == exact(from_text(following.snapshot()[0]))
        assert exact(rebuilt["state"]) == exact(state)
        content = following
