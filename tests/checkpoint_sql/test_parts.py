"""Long threads: bundles repeat many steps in one row, and a snapshot's long lists come in parts."""

from __future__ import annotations

import logging
import operator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from jianmu import StateManager
from jianmu.errors import CheckpointCorruptError
from jianmu.memory import AesGcmCipher
from jianmu.memory.checkpoint.delta_checkpointer import DeltaCheckpointer
from tests.checkpoint_sql.conftest import Backend

STEPS = 300
TEXT = "x" * 1_000


class Chat(BaseModel):
    messages: Annotated[list[dict[str, Any]], operator.add] = []
    turn: int = 0


def fill(store: DeltaCheckpointer, steps: int = STEPS, first: int = 1) -> None:
    """Save so many steps of a chat that gains a message a step."""
    manager = StateManager(Chat)
    manager.initialize({"messages": messages(first - 1)})
    for step in range(first, steps + 1):
        manager.update({"messages": [{"n": step, "text": TEXT}], "turn": step})
        store.save_checkpoint("t", step, manager.dump_checkpoint(), {"0": "RUNNING"}, {"ticks": step})


def messages(count: int) -> list[dict[str, Any]]:
    return [{"n": number, "text": TEXT} for number in range(1, count + 1)]


def check(store: DeltaCheckpointer, step: int, thread: str = "t", *, newest: bool = False) -> None:
    found = store.get_checkpoint(thread, step=None if newest else step)
    assert found == {
        "step": step,
        "state": {"messages": messages(step), "turn": step, "~version": 1},
        "tree": {"0": "RUNNING"},
        "runtime_metadata": {"ticks": step},
    }


def parts(backend: Backend, condition: str) -> list[tuple[Any, ...]]:
    return backend.sql(f"SELECT step, part, before FROM jianmu_part WHERE {condition} ORDER BY step, part")


def test_every_step_of_a_long_thread_is_found_through_its_bundles_and_parts(backend: Backend) -> None:
    fill(backend.open())
    assert parts(backend, "part > 0")
    assert parts(backend, "part < 0")
    reader = backend.open()
    for step in (1, 2, 63, 64, 65, 66, 127, 128, 129, *range(200, STEPS + 1, 9)):
        check(reader, step)
    check(reader, STEPS, newest=True)


def test_a_reader_needs_few_rows_however_many_steps_there_are(backend: Backend) -> None:
    fill(backend.open())
    (base,) = backend.sql("SELECT max(base) FROM jianmu_step")[0]
    (last,) = backend.sql("SELECT max(step) FROM jianmu_part WHERE part < 0")[0]
    assert len(parts(backend, f"part < 0 AND step > {base}")) == (STEPS - base) // 64
    assert STEPS - max(last, base) < 64


def test_a_reopened_store_goes_on_bundling(backend: Backend) -> None:
    fill(backend.open(), 40)
    fill(backend.open(), 200, first=41)
    reader = backend.open()
    for step in (39, 40, 41, 100, 200):
        check(reader, step)
    steps = [(before, step) for step, _, before in parts(backend, "part < 0")]
    assert all(step - before >= 64 for before, step in steps)


def test_a_damaged_bundle_is_read_step_by_step_and_told(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    fill(backend.open())
    backend.sql("UPDATE jianmu_part SET sum = sum + 1 WHERE part < 0")
    with caplog.at_level(logging.WARNING, "jianmu"):
        check(backend.open(), STEPS, newest=True)
    assert "a bundle is damaged" in caplog.text
    fill(backend.open(), STEPS + 5, first=STEPS + 1)
    check(backend.open(), STEPS + 5, newest=True)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE jianmu_part SET sum = sum + 1 WHERE part = 1",
        "DELETE FROM jianmu_part WHERE part = 2",
        "UPDATE jianmu_part SET part = part + 10 WHERE part = 1",
    ],
    ids=["flipped", "missing", "moved"],
)
def test_a_snapshot_with_a_bad_part_is_an_error_that_offers_the_step_before(
    backend: Backend, damage: str
) -> None:
    fill(backend.open())
    (base,) = backend.sql("SELECT max(base) FROM jianmu_step")[0]
    backend.sql(f"{damage} AND step = {base}")
    with pytest.raises(CheckpointCorruptError, match=f"'t', step {base}") as caught:
        backend.open().get_checkpoint("t")
    assert caught.value.previous_step == base - 1
    check(backend.open(), base - 1)


def test_forks_truncations_and_prunings_keep_every_step_that_stays(backend: Backend) -> None:
    store = backend.open()
    fill(store)
    store.fork_thread("t", "copy", step=250)
    check(store, 250, "copy", newest=True)
    check(store, 100, "copy")
    assert store.truncate_thread("t", step=270) == STEPS - 270
    check(store, 270, newest=True)
    fill(store, 290, first=271)
    assert store.prune("t", keep_last=100) == 190
    for step in (191, 192, 255, 256, 270, 271, 290):
        check(backend.open(), step)
    fill(store, 420, first=291)
    check(backend.open(), 420, newest=True)
    check(backend.open(), 250)
    assert store.delete_thread("t")
    assert not parts(backend, "thread = " + ("x'74'" if "Sqlite" in backend.source else r"'\x74'"))
    check(store, 250, "copy")


def test_sealed_parts_and_bundles_belong_to_their_thread_and_place(backend: Backend) -> None:
    cipher = AesGcmCipher(b"k" * 32)
    store = backend.open(cipher=cipher)
    fill(store)
    store.fork_thread("t", "copy")
    check(backend.open(cipher=cipher), STEPS, "copy", newest=True)
    assert not [body for (body,) in backend.sql("SELECT body FROM jianmu_part") if TEXT[:50].encode() in body]
    (base,) = backend.sql("SELECT max(base) FROM jianmu_step")[0]
    first, second = backend.sql(
        f"SELECT sum, body FROM jianmu_part WHERE part IN (1, 2) AND step = {base} ORDER BY thread, part"
    )[:2]
    for (checksum, body), part in ((first, 2), (second, 1)):
        sql = f"UPDATE jianmu_part SET sum = ?, body = ? WHERE step = {base} AND part = {part}"
        backend.sql(sql, checksum, body)
    with pytest.raises(CheckpointCorruptError):
        backend.open(cipher=cipher).get_checkpoint("t")
