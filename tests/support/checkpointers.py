"""Back ends that only tests need."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from jianmu.memory.checkpoint.envelope import make_checkpoint_envelope

__all__ = ["AsyncCheckpointer", "TwoMethods"]


class TwoMethods:
    """The least that a checkpointer can be: it keeps the newest envelope of each thread."""

    def __init__(self) -> None:
        self.newest: dict[str, dict[str, Any]] = {}
        self.saves: list[dict[str, Any]] = []

    def save_checkpoint(
        self, thread_id: str, step: int, state_dump: Any, tree_state: Any = None, runtime_metadata: Any = None
    ) -> Any:
        envelope = copy.deepcopy(make_checkpoint_envelope(step, state_dump, tree_state, runtime_metadata))
        self.newest[thread_id] = envelope
        self.saves.append(envelope)

    def get_checkpoint(self, thread_id: str) -> Any:
        return copy.deepcopy(self.newest.get(thread_id))


class AsyncCheckpointer:
    """Its two methods are coroutines."""

    def __init__(self) -> None:
        self.inner = TwoMethods()

    async def save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        self.inner.save_checkpoint(*args, **kwargs)

    async def get_checkpoint(self, thread_id: str) -> Any:
        await asyncio.sleep(0)
        return self.inner.get_checkpoint(thread_id)
