"""Threads, event loops and rivals."""

from __future__ import annotations

import asyncio
import concurrent.futures
from pathlib import Path

import pytest

from jianmu.errors import (
    CheckpointExistsError,
)
from jianmu.memory.checkpoint.base import (
    CheckpointerProtocol,
    HistoryCapable,
)
from jianmu.testing.checkpointer.harness import CheckpointerHarness, close

__all__ = ["ConcurrencySuite"]


class ConcurrencySuite(CheckpointerHarness):
    """Saves side by side."""

    def test_threads_of_one_process_save_side_by_side(self, store: CheckpointerProtocol, home: Path) -> None:
        def work(number: int) -> None:
            for step in range(self.many_saves):
                store.save_checkpoint(f"t{number}", step, {"n": number, "items": list(range(step % 7))})
                assert store.get_checkpoint(f"t{number}")["step"] == step

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        reader = self.again(store, home)
        for number in range(4):
            envelope = reader.get_checkpoint(f"t{number}")
            assert (envelope["step"], envelope["state"]["n"]) == (self.many_saves - 1, number)
        if isinstance(reader, HistoryCapable):
            for number in range(4):
                steps = [info.step for info in reader.list_checkpoints(f"t{number}")]
                assert steps == list(range(self.many_saves - 1, -1, -1))

    def test_two_objects_race_on_one_thread_and_every_step_is_saved_once(self, home: Path) -> None:
        if not self.durable:
            pytest.skip("a store in memory has one object")
        stores = [self.make(home) for _ in range(2)]
        self.journal(stores[0])  # a back end without one gets the last step again

        def work(index: int) -> list[int]:
            won = []
            for step in range(self.many_saves):
                try:
                    stores[index].save_checkpoint("t", step, {"by": index})
                except CheckpointExistsError:
                    continue
                won.append(step)
            return won

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            won = list(pool.map(work, range(2)))
        history = self.history(stores[0])
        saved = [info.step for info in history.list_checkpoints("t")]
        assert saved == sorted(won[0] + won[1], reverse=True)
        for index in range(2):
            for step in won[index][:5] + won[index][-5:]:
                envelope = history.get_checkpoint("t", step=step)
                assert envelope is not None
                assert envelope["state"] == {"by": index}
        for store in stores:
            close(store)

    def test_two_event_loops_one_after_the_other_share_one_object(self, store: CheckpointerProtocol) -> None:
        async def work(start: int) -> None:
            store.save_checkpoint("t", start, {"n": start})
            await asyncio.to_thread(store.save_checkpoint, "t", start + 1, {"n": start + 1})
            assert (await asyncio.to_thread(store.get_checkpoint, "t"))["step"] == start + 1

        asyncio.run(asyncio.wait_for(work(1), 20))
        asyncio.run(asyncio.wait_for(work(3), 20))
        assert store.get_checkpoint("t")["state"] == {"n": 4}

    def test_two_event_loops_in_two_threads_share_one_object(self, store: CheckpointerProtocol) -> None:
        async def work(number: int) -> None:
            for step in range(self.many_saves):
                await asyncio.to_thread(store.save_checkpoint, f"t{number}", step, {"n": step})

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda number: asyncio.run(work(number)), range(2)))
        for number in range(2):
            assert store.get_checkpoint(f"t{number}")["step"] == self.many_saves - 1
            if isinstance(store, HistoryCapable):
                assert len(store.list_checkpoints(f"t{number}")) == self.many_saves
