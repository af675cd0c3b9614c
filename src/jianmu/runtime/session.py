"""One call of `run`: everything that lives from its start to its end."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from py_trees.common import Status

from jianmu.errors import RunError
from jianmu.events import RuntimeEventBus
from jianmu.runtime.activity import Activity
from jianmu.runtime.failures import dump_failures, load_failures, message_of
from jianmu.runtime.identity import RunIdentity
from jianmu.runtime.journal import Journal
from jianmu.runtime.leaf import AsyncNode
from jianmu.runtime.leaves import LiveLeaves
from jianmu.runtime.position import TreePosition
from jianmu.runtime.questions import Questions
from jianmu.runtime.result import Question
from jianmu.runtime.schedule import Schedule
from jianmu.runtime.store import RUNNER_KEY, ThreadStore
from jianmu.runtime.tree import TreeIndex
from jianmu.runtime.wake import Wake
from jianmu.state import StateManager

__all__ = ["Session"]

logger = logging.getLogger(__name__)

_METADATA_FORMAT = 1


class Session:
    """Ticks the tree, is what its leaves talk to, and knows all that a resume needs.

    It must be made on the event loop that the run uses.

    Args:
        index: The tree.
        state_manager: The state.
        store: The thread.
        bus: Where events go.
        context: A ContextBuilder, or None.
        tick_period: Seconds between ticks that nothing else causes, or None for none.
        livelock_after: How many ticks in a row the tree may cause by itself.

    Attributes:
        step: The last step, counting ticks and what is saved between them.
        saved_step: The last step that was given to the back end.
        ticks: Ticks of this call.
        total_ticks: Ticks in the life of the thread.
        errors: The last exception of each leaf that failed by one in this round, by path, the latest last; of
            an earlier call what was saved of it.
        cancelled: Whether the run was asked to end.
        failure: What ends the run from outside, such as a lost lease.
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
        self.leaves = LiveLeaves(index, self.wake)
        self.schedule = Schedule(index, self.wake, self.leaves, tick_period, livelock_after)
        self.identity = RunIdentity()
        self.journal = Journal(store)
        self.questions = Questions(self.wake, self._asked)
        self.step = 0
        self.saved_step = 0
        self.ticks = 0
        self.total_ticks = 0
        self.errors: dict[str, BaseException] = {}
        self.cancelled = False
        self.failure: BaseException | None = None
        self._bus = bus
        self._context = context
        self._published: set[tuple[str, int, str]] = set()
        self._ticking = False
        self._field_changed = False

    # Beginning and going on

    def start_fresh(self) -> None:
        """Take the tree back to its beginning, under a new run id."""
        self.position.reset()
        self.index.mark()
        self.identity.start_fresh()
        self._published = set()
        self._begin_timeline()

    def start_round(self) -> None:
        """Go on from a finished run: the next tick begins at the root."""
        self.identity.start_epoch()
        self._begin_timeline()
        self.errors = {}
        self.schedule.due = True

    def _begin_timeline(self) -> None:
        self.journal.begin(self.identity.timeline)
        self.questions.begin(self.identity.question_prefix)

    def metadata(self, outcome: str) -> dict[str, Any]:
        """Return all that a resume needs beside state and statuses, as plain data."""
        has_ended = self.leaves.has_ended
        self.questions.settle(has_ended)
        self._published = {each for each in self._published if not has_ended(each[0], each[1])}
        own: dict[str, Any] = {
            "format": _METADATA_FORMAT,
            "thread_id": self.thread_id,
            **self.identity.dump(),
            "ticks": self.total_ticks,
            "outcome": outcome,
            "due": self.schedule.due or self.wake.has("state"),
            "tree": self.position.metadata(),
            "questions": self.questions.dump(),
            "published": sorted([list(each) for each in self._published]),
        }
        if self.errors:
            own["errors"] = dump_failures(self.errors)
        if not self.store.has_journal:
            own["journal"] = self.journal.records
        return {**self.state_manager.dump_runtime_metadata(), RUNNER_KEY: own}

    async def load_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Take up what `metadata` gave, the runner's part of the envelope's."""
        self.total_ticks = int(metadata.get("ticks", 0))
        self.schedule.due = bool(metadata.get("due", True))
        self.errors = load_failures(metadata.get("errors", []))
        self._published = {(path, number, key) for path, number, key in metadata.get("published", [])}
        fork = metadata.get("thread_id", self.thread_id) != self.thread_id
        same_timeline = self.identity.load(metadata, fork=fork)
        self._begin_timeline()
        if same_timeline:
            await self.journal.load(self.identity.timeline)
        self.questions.load(self.identity.question_prefix, metadata.get("questions", {}))

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
        if self.index.root.status is Status.INVALID:
            raise RunError("the root is INVALID after its tick: a node's update() returned no valid status")
        self.step += 1
        self.ticks += 1
        self.total_ticks += 1
        changed = self.index.mark() or self._field_changed
        self.leaves.sweep()
        self._emit_tick()
        self.schedule.ticked(changed=changed and not self.finished)

    @property
    def finished(self) -> bool:
        """Whether the root came to an end."""
        return self.index.root.status in (Status.SUCCESS, Status.FAILURE)

    def state_changed(self, *_: object) -> None:
        """Told by the state manager of every change."""
        if self._ticking:
            self._field_changed = True
        else:
            self.wake.add_from_any_thread("state")

    def tell_stored(self) -> None:
        """Log that this call runs nothing: whoever expects work to be done must not be left to wonder."""
        status = self.index.root.status
        logger.log(
            logging.WARNING if status is Status.FAILURE else logging.INFO,
            "thread %r had ended at step %d with %s: its stored result is returned and nothing is run. To "
            "run again, pass input_data= ({} will do) for a new round on the same state, or another "
            "thread_id, or call delete_thread(%r) on the checkpointer",
            self.thread_id,
            self.step,
            status.name,
            self.thread_id,
        )

    # What leaves ask for

    def begin(self, leaf: AsyncNode) -> Activity:
        """Prepare an activation of `leaf`, which starts when this tick is committed."""
        activity = Activity(self, leaf)
        self.leaves.add(activity)
        return activity

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

    def leaf_failed(self, path: str, leaf: AsyncNode, error: BaseException) -> None:
        """Keep and tell the error of a leaf."""
        self.errors.pop(path, None)
        self.errors[path] = error
        kind, message = type(error).__name__, message_of(error)
        where = f"leaf {path} ({leaf.name}) of thread {self.thread_id!r}"
        logger.warning("%s failed: %s: %s", where, kind, message, exc_info=error)
        details = {"path": path, "name": leaf.name, "error": kind, "message": message}
        self.emit("leaf.failed", {"thread_id": self.thread_id, **details})

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

    # Events

    def emit(self, type: str, payload: Mapping[str, Any]) -> None:
        """Put one event on the bus."""
        self._bus.emit(type, payload)

    def _asked(self, question: Question) -> None:
        payload = {"id": question.id, "path": question.path, "payload": question.payload}
        self.emit("question.asked", {"thread_id": self.thread_id, **payload})

    def _emit_tick(self) -> None:
        head = {"thread_id": self.thread_id, "step": self.step}
        if self._bus.wants("node.status"):
            for node, path, before in self.index.changes():
                change = {"status": node.status.name, "previous": before.name}
                self.emit("node.status", {**head, "path": path, "name": node.name, **change})
        if self._bus.wants("tick"):
            self.emit("tick", {**head, "status": self.index.root.status.name})
