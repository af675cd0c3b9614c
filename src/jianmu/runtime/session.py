"""One call of `run`: everything that lives from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.common import Status
from py_trees.timers import Timer

from jianmu.errors import LivelockError, RunError, StalledError
from jianmu.events import RuntimeEventBus
from jianmu.runtime.activity import Activity
from jianmu.runtime.journal import Journal
from jianmu.runtime.leaf import AsyncNode
from jianmu.runtime.position import TreePosition
from jianmu.runtime.questions import Questions
from jianmu.runtime.result import Question
from jianmu.runtime.store import RUNNER_KEY, ThreadStore
from jianmu.runtime.tree import TreeIndex
from jianmu.runtime.wake import Cause, Wake
from jianmu.state import StateManager

__all__ = ["Session"]

logger = logging.getLogger(__name__)

_METADATA_FORMAT = 1
_TICK_CAUSES: frozenset[Cause] = frozenset({"leaf", "state", "timer", "period", "tick"})


class Session:
    """The run's identity, its ticks, its leaves under way and what it saves.

    It must be made on the event loop that the run uses.

    Args:
        index: The tree.
        state_manager: The state.
        store: The thread.
        bus: Where events go.
        context: A ContextBuilder, or None.
        tick_period: Seconds between ticks that nothing else causes, or None for none.
        livelock_after: How many ticks in a row the tree may cause by itself.
    """

    def __init__(
        self,
        index: TreeIndex,
        state_manager: StateManager[Any],
        store: ThreadStore,
        bus: RuntimeEventBus,
        *,
        context: Any = None,
        tick_period: float | None = None,
        livelock_after: int = 1_000,
    ) -> None:
        self.index = index
        self.position = TreePosition(index)
        self.state_manager = state_manager
        self.store = store
        self.thread_id = store.thread_id
        self.wake = Wake()
        self.journal = Journal(store)
        self.questions = Questions(self.wake, self._asked)
        self.step = 0
        self.saved_step = 0
        self.ticks = 0
        self.total_ticks = 0
        self.due = True
        """Whether the last tick changed something, so that the next one follows by itself."""
        self.resumed = False
        self.identity_saved = False
        """Whether a checkpoint with the present run id and epoch was saved."""
        self.errors: dict[str, BaseException] = {}
        self.cancelled = False
        self.failure: BaseException | None = None
        self._bus = bus
        self._context = context
        self._tick_period = tick_period
        self._livelock_after = livelock_after
        self._run_id = ""
        self._epoch = 0
        self._least_epoch = 0
        self._published: set[tuple[str, int, str]] = set()
        self._begun: list[Activity] = []
        self._live: list[Activity] = []
        self._effects = 0
        self._ticking = False
        self._field_changed = False
        self._self_caused = 0
        self._last_tick = time.monotonic()

    # Identity

    def start_fresh(self) -> None:
        """Draw a new run id and take the tree back to its beginning."""
        self._run_id = secrets.token_hex(8)
        self._epoch = 0
        self._published = set()
        self.position.reset()
        self.index.mark()
        self._begin_run()

    def start_epoch(self, *, fork: bool = False) -> None:
        """Tell what follows from what was done before under the same activations."""
        if fork:
            self._run_id = secrets.token_hex(8)
        self._epoch = max(self._epoch + 1, self._least_epoch)
        self._begin_run()

    def leave_behind(self, newest: Mapping[str, Any] | None) -> None:
        """Note what was the newest envelope before it was cut off: its epoch is not to be used again."""
        runner = (newest or {}).get("runtime_metadata", {}).get(RUNNER_KEY, {})
        self._least_epoch = int(runner.get("epoch", 0)) + 1

    def _begin_run(self) -> None:
        self.identity_saved = False
        self.journal.begin(self._run)
        self.questions.begin(self._question_prefix)

    @property
    def _run(self) -> str:
        return f"{self._run_id}.{self._epoch}"

    @property
    def _question_prefix(self) -> str:
        return f"{self._run_id[:8]}.{self._epoch}"

    def idempotency_key(self, path: str, activation: int) -> str:
        """Return the key of one activation; `once` adds its own."""
        return f"{self._run_id}/{self._epoch}/{path}/{activation}"

    # What is saved

    def metadata(self, outcome: str) -> dict[str, Any]:
        """Return all that a resume needs beside state and statuses, as plain data."""
        self.questions.settle(self.has_ended)
        self._published = {each for each in self._published if not self.has_ended(each[0], each[1])}
        own: dict[str, Any] = {
            "format": _METADATA_FORMAT,
            "thread_id": self.thread_id,
            "run_id": self._run_id,
            "epoch": self._epoch,
            "ticks": self.total_ticks,
            "outcome": outcome,
            "due": self.due,
            "tree": self.position.metadata(),
            "questions": self.questions.dump(),
            "published": sorted([list(each) for each in self._published]),
        }
        if not self.store.has_journal:
            own["journal"] = self.journal.records
        return {**self.state_manager.dump_runtime_metadata(), RUNNER_KEY: own}

    async def load_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Take up what `metadata` gave, the runner's part of the envelope's."""
        self._run_id = str(metadata.get("run_id") or secrets.token_hex(8))
        self._epoch = int(metadata.get("epoch", 0))
        self.total_ticks = int(metadata.get("ticks", 0))
        self.due = bool(metadata.get("due", True))
        self._published = {(path, number, key) for path, number, key in metadata.get("published", [])}
        fork = metadata.get("thread_id", self.thread_id) != self.thread_id
        if fork or self._least_epoch:
            self.start_epoch(fork=fork)
        else:
            await self.journal.load(self._run)
            self.identity_saved = "run_id" in metadata
        self.questions.load(self._question_prefix, metadata.get("questions", {}))

    def has_ended(self, path: str, activation: int) -> bool:
        """Whether that activation is over as of the last tick."""
        leaf = self.index.leaf_at.get(path)
        if leaf is None or leaf.activation > activation:
            return True
        return leaf.activation == activation and leaf.status is not Status.RUNNING

    # Ticks

    def tick(self) -> None:
        """Tick the tree once, to its end; nothing else runs meanwhile.

        Raises:
            LivelockError: The tree has caused too many ticks in a row by itself.
        """
        self._field_changed = False
        self._ticking = True
        try:
            for _ in self.index.root.tick():
                pass
        finally:
            self._ticking = False
        self._last_tick = time.monotonic()
        self.step += 1
        self.ticks += 1
        self.total_ticks += 1
        if self.index.root.status is Status.INVALID:
            raise RunError("the root is INVALID after its tick: a node's update() returned no valid status")
        changed = self.index.mark()
        self.due = (changed or self._field_changed) and not self.finished
        self._live = [activity for activity in self._live if not activity.settled]
        self._emit_tick()
        if not self.due:
            self._self_caused = 0
            return
        self._self_caused += 1
        if self._self_caused > self._livelock_after:
            raise LivelockError(
                f"the tree caused {self._livelock_after} ticks in a row by itself and is still RUNNING; "
                "a Repeat, Retry or counter without end needs a leaf that waits for something"
            )

    @property
    def finished(self) -> bool:
        """Whether the root came to an end."""
        return self.index.root.status in (Status.SUCCESS, Status.FAILURE)

    async def next_causes(self) -> set[Cause]:
        """Wait for what comes next and return it: after a change one turn of the loop, else an event.

        Raises:
            StalledError: Nothing is left that could come.
        """
        if self.due:
            await asyncio.sleep(0)
            return self.wake.take() | {"tick"}
        delays = self._delays()
        if not delays and not self._live and not self.wake.pending:
            raise StalledError(self._stall())
        await self.wake.wait(delays)
        causes = self.wake.take()
        if "timer" in causes and not self._timer_is_due():
            causes.discard("timer")
        if causes & _TICK_CAUSES:
            self._self_caused = 0
        return causes

    def calls_for_tick(self, causes: set[Cause]) -> bool:
        """Whether it is time for a tick."""
        return bool(causes & _TICK_CAUSES)

    def _delays(self) -> dict[Cause, float]:
        delays: dict[Cause, float] = {}
        waits = [_seconds_left(node) for node in self.index.deadlines if node.status is Status.RUNNING]
        if waits:
            # An hour at most: a wall clock may be set, and then the timer ends at another moment.
            delays["timer"] = min(3600.0, max(0.0, min(waits)) + 0.001)
        if self._tick_period is not None:
            delays["period"] = self._last_tick + self._tick_period - time.monotonic()
        return delays

    def _timer_is_due(self) -> bool:
        return any(_seconds_left(node) < 0 for node in self.index.deadlines if node.status is Status.RUNNING)

    def _stall(self) -> str:
        waiting = [
            f"{path} ({node.name!r})"
            for node, path in zip(self.index.nodes, self.index.paths, strict=True)
            if node.status is Status.RUNNING and not node.children
        ]
        return (
            f"the root is RUNNING and nothing is left that could wake it; RUNNING leaves: "
            f"{', '.join(waiting) or 'none'}. Give the runner tick_period= for a leaf that polls, or make it "
            "an async @node that awaits what it waits for"
        )

    def state_changed(self, *_: object) -> None:
        """Told by the state manager of every change."""
        if self._ticking:
            self._field_changed = True
        else:
            self.wake.add_from_any_thread("state")

    # Leaves

    def path_of(self, node: Behaviour) -> str:
        """Return the index path of `node`."""
        return self.index.path_of[id(node)]

    def begin(self, leaf: AsyncNode) -> Activity:
        """Prepare an activation of `leaf`; `start_leaves` lets it run."""
        activity = Activity(self, leaf, self.path_of(leaf))
        self._begun.append(activity)
        return activity

    def resume_leaves(self) -> None:
        """Prepare the leaves that the checkpoint left RUNNING."""
        for leaf in self.index.leaves:
            if leaf.status is Status.RUNNING:
                leaf.resume()

    def start_leaves(self) -> None:
        """Let the leaves run that were begun since the last call."""
        begun, self._begun = self._begun, []
        for activity in begun:
            if not activity.cancelled:
                activity.start()
                self._live.append(activity)

    @property
    def any_leaf_done(self) -> bool:
        """Whether a leaf ended whose result no tick has taken."""
        return any(activity.done for activity in self._live)

    def preview(self, updates: Sequence[Mapping[str, Any]]) -> Any:
        """Return the committed state with `updates` on top."""
        return self.state_manager.preview(*updates)

    def commit(self, updates: Sequence[Mapping[str, Any]]) -> None:
        """Apply all updates of one leaf, or none.

        Raises:
            StateValidationError: The schema refuses one.
        """
        if len(updates) > 1:
            self.state_manager.preview(*updates)
        for changes in updates:
            self.state_manager.update(changes)

    def publish(self, path: str, activation: int, key: str, changes: Mapping[str, Any]) -> None:
        """Apply an update at once, unless the state has it since before a restart."""
        place = (path, activation, key)
        if place not in self._published:
            self.state_manager.update(changes)
            self._published.add(place)

    @contextlib.contextmanager
    def effect_under_way(self) -> Iterator[None]:
        """Count a `once` call while it lasts."""
        self._effects += 1
        try:
            yield
        finally:
            self._effects -= 1
            self.wake.add("question")

    async def drain_effects(self, timeout: float) -> None:
        """Wait until no `once` call is under way, `timeout` seconds at most."""
        deadline = time.monotonic() + timeout
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._effects and time.monotonic() < deadline:
                    self.wake.take()
                    await self.wake.wait({})
        await asyncio.sleep(0)

    def leaf_failed(self, path: str, leaf: AsyncNode, error: BaseException) -> None:
        """Keep and tell the error of a leaf."""
        self.errors[path] = error
        logger.warning("leaf %s (%s) failed: %s", path, leaf.name, type(error).__name__)
        logger.debug("the leaf's traceback", exc_info=error)
        self.emit(
            "leaf.failed",
            {
                "thread_id": self.thread_id,
                "path": path,
                "name": leaf.name,
                "error": type(error).__name__,
                "message": str(error),
            },
        )

    async def build_context(self, kwargs: dict[str, Any]) -> Any:
        """Call the runner's ContextBuilder."""
        if self._context is None:
            raise RunError("no context builder; make the runner with ReactiveRunner(..., context=builder)")
        build = getattr(self._context, "abuild", None) or self._context.build
        built = build(self.state_manager.get(), thread_id=self.thread_id, **kwargs)
        return await built if inspect.isawaitable(built) else built

    # Control from outside

    def fail_from_any_thread(self, error: BaseException) -> None:
        """End the run with `error`."""
        self.failure = error
        self.wake.add_from_any_thread("failure")

    def cancel(self) -> None:
        """End the run as cancelled, from any thread."""
        self.cancelled = True
        self.wake.add_from_any_thread("cancel")

    async def stop_tree(self) -> None:
        """Interrupt what is RUNNING, each node once, and wait for the leaves' own clean-up."""
        if self.index.root.status is Status.RUNNING:
            self.index.root.stop(Status.INVALID)
        tasks = [activity.task for activity in self._live if activity.task is not None]
        for activity in self._live:
            activity.cancel()
        if tasks:
            _, slow = await asyncio.wait(tasks, timeout=5.0)
            for task in slow:
                logger.warning("%s goes on although it was cancelled", task.get_name())
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.exception()

    # Events

    def emit(self, type: str, payload: Mapping[str, Any]) -> None:
        """Put one event on the bus."""
        self._bus.emit(type, payload)

    def _asked(self, question: Question) -> None:
        payload = {"id": question.id, "path": question.path, "payload": question.payload}
        self.emit("question.asked", {"thread_id": self.thread_id, **payload})

    def _emit_tick(self) -> None:
        if self._bus.wants("node.status"):
            before = self.index.previous_statuses or [Status.INVALID] * len(self.index.nodes)
            for node, path, old in zip(self.index.nodes, self.index.paths, before, strict=True):
                if node.status is not old:
                    self.emit(
                        "node.status",
                        {
                            "thread_id": self.thread_id,
                            "step": self.step,
                            "path": path,
                            "name": node.name,
                            "status": node.status.name,
                            "previous": old.name,
                        },
                    )
        if self._bus.wants("tick"):
            self.emit(
                "tick",
                {"thread_id": self.thread_id, "step": self.step, "status": self.index.root.status.name},
            )


def _seconds_left(node: Any) -> float:
    now = time.time() if isinstance(node, Timer) else time.monotonic()
    return float(node.finish_time) - now
