"""ReactiveRunner: wake, tick, commit."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from py_trees.behaviour import Behaviour
from py_trees.common import Status

from jianmu.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    RunError,
    StateError,
    UnknownQuestionError,
)
from jianmu.events import RuntimeEventBus
from jianmu.memory.checkpoint.arguments import no_such_step
from jianmu.memory.checkpoint.base import CheckpointerProtocol
from jianmu.memory.checkpoint.factory import create_checkpointer
from jianmu.project import RuntimeCheckpointConfig
from jianmu.runtime.arguments import check_checkpointer, check_composites, check_runner
from jianmu.runtime.hold import ThreadHold
from jianmu.runtime.mismatch import state_refused, tree_changed
from jianmu.runtime.options import InputData, RunOptions
from jianmu.runtime.result import Outcome, Question, RestorePolicy, RunResult, SuspensionMode
from jianmu.runtime.schedule import calls_for_tick
from jianmu.runtime.session import Session
from jianmu.runtime.store import RUNNER_KEY, ThreadStore
from jianmu.runtime.tree import TreeIndex
from jianmu.state import StateManager

__all__ = ["ReactiveRunner"]

_SETTLE_TICKS = 1_000
"""A tree that never comes to rest beside an open question is suspended after so many more ticks."""


class _Ticket:
    """One call of `run`, from the call itself on: what `cancel` before the first step must reach."""

    def __init__(self) -> None:
        self.cancelled = False
        self.session: Session | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self.session is not None:
            self.session.cancel()


class ReactiveRunner:
    """Runs a behaviour tree: it wakes by an event, ticks, commits, and waits again; it never polls.

    A run with a checkpointer that is killed goes on at the very next step when `run` is called again with
    the same tree and thread. One runner makes one run at a time; it may be used again, also on another loop.

    Args:
        root: The tree: any py_trees nodes, with leaves made by `node`, `AsyncNode` or `Ask`.
        state_manager: The typed state.
        event_bus: Where events go; a bus of its own by default.
        config: The checkpoint settings that hold when `run` is given none.
        context: A ContextBuilder for `ctx.build_context`.
        tick_period: Seconds after which to tick though nothing happened, for nodes that poll; None = never.

    Raises:
        ConfigError: An argument of the wrong kind, or a composite whose arguments slipped; the message has
            the call to write.
    """

    livelock_after = 1_000
    """How many ticks in a row the tree may cause by itself before `LivelockError`."""
    drain_timeout = 5.0
    """Seconds that open `once` calls get to end when a run is suspended."""

    def __init__(
        self,
        root: Behaviour,
        state_manager: StateManager[Any],
        event_bus: RuntimeEventBus | None = None,
        config: RuntimeCheckpointConfig | None = None,
        context: Any = None,
        tick_period: float | None = None,
    ) -> None:
        check_runner(root, state_manager, event_bus, config, tick_period)
        check_composites(root, whole=False)
        self.root = root
        self.state_manager = state_manager
        self.event_bus = event_bus if event_bus is not None else RuntimeEventBus()
        self._config = config if config is not None else RuntimeCheckpointConfig()
        self._context = context
        self._tick_period = tick_period
        self._own_checkpointer: CheckpointerProtocol | None = None
        self._busy = threading.Lock()
        self._tickets: weakref.WeakSet[_Ticket] = weakref.WeakSet()
        self._session: Session | None = None

    def run(
        self,
        input_data: InputData = None,
        *,
        checkpointer: CheckpointerProtocol | None = None,
        thread_id: str = "default",
        checkpoint_interval: int | None = None,
        restore_policy: RestorePolicy = RestorePolicy.AUTO,
        suspension_mode: SuspensionMode = SuspensionMode.WAIT,
        answers: Mapping[str, Any] | None = None,
        max_ticks: int | None = None,
        from_step: int | None = None,
        fork_to: str | None = None,
        truncate: bool = False,
    ) -> Coroutine[Any, Any, RunResult]:
        """Run the tree until its root ends, it is suspended or cancelled, or `max_ticks` are made.

        Args:
            input_data: First values of the state. Ignored while an unfinished run goes on; on a finished one
                it starts a new round, also when it is ``{}``. With `from_step` or `fork_to` it updates the
                state of that step.
            checkpointer: Keeps the thread's steps; None = as the config says, by default nowhere.
            thread_id: The thread, any non-empty string.
            checkpoint_interval: Save every so many ticks; None = as the config says, by default 1.
            restore_policy: What to do about an earlier checkpoint.
            suspension_mode: What to do while a leaf waits for an answer.
            answers: Answers to open questions, by id.
            max_ticks: Return after so many ticks of this call.
            from_step: Go back to this step of the thread; needs `fork_to` or `truncate`.
            fork_to: Leave the thread as it is and go on under this new id; without `from_step` from its
                newest step.
            truncate: Drop the steps after `from_step` and go on in place.

        Returns:
            How it ended (this method is awaited).

        Raises:
            ConfigError: An argument of the wrong kind, arguments that do not fit together, or a composite
                without children.
            ThreadBusyError: Another runner holds the thread.
            CheckpointNotFoundError: REQUIRED and no checkpoint, or no such step.
            TreeChangedError: The tree is not the one that was saved. A new round after a finished run may
                have another.
            StateValidationError: The schema refuses the saved state or `input_data`.
            UnsupportedNodeError: A node whose position cannot be saved.
            UnknownQuestionError: `answers` has an id that is not open.
            StalledError: RUNNING, and nothing left that could wake the tree.
            LivelockError: The tree keeps causing its own ticks.
            RunError: This runner is running already.
        """
        options = RunOptions(
            input_data=input_data,
            thread_id=thread_id,
            interval=self._config.interval if checkpoint_interval is None else checkpoint_interval,
            policy=restore_policy,
            mode=suspension_mode,
            answers={} if answers is None else answers,
            max_ticks=max_ticks,
            from_step=from_step,
            fork_to=fork_to,
            truncate=truncate,
        )
        check_checkpointer(checkpointer)
        ticket = _Ticket()
        self._tickets.add(ticket)
        return self._run(ticket, options, checkpointer)

    def run_sync(self, *args: Any, **kwargs: Any) -> RunResult:
        """Do `run` where no event loop is running; same arguments and result.

        Raises:
            RunError: An event loop is running in this thread.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass  # the run begins outside this block, or every error of a leaf would be chained to this one
        else:
            raise RunError("run_sync() was called inside a running event loop; use `await runner.run(...)`")
        return asyncio.run(self.run(*args, **kwargs))

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions open in the current run, or left open by a suspended one."""
        session = self._session
        return () if session is None else session.questions.pending

    def answer(self, question_id: str, value: Any) -> None:
        """Answer an open question, from any thread; it is saved before its leaf gets it.

        Args:
            question_id: As in `pending`.
            value: Anything that the state could hold.

        Raises:
            UnknownQuestionError: No such question is open in a run under way. The same answer again is none.
            EncodeError: The answer cannot be saved.
        """
        session = self._session
        if session is None:
            raise UnknownQuestionError(
                f"no open question {question_id!r}: nothing is running; pass answers= to run()"
            )
        session.questions.accept(question_id, value)

    def cancel(self) -> bool:
        """End the runs that were called and have not ended, from any thread.

        Such a run saves, interrupts its leaves and returns with outcome ``"cancelled"``. A run that is
        called later is not touched.

        Returns:
            Whether there was one.
        """
        tickets = list(self._tickets)
        for ticket in tickets:
            ticket.cancel()
        return bool(tickets)

    def close(self) -> None:
        """Close the checkpointer that was made from the config; safe to call twice."""
        own, self._own_checkpointer = self._own_checkpointer, None
        close = getattr(own, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # The run

    async def _run(
        self, ticket: _Ticket, options: RunOptions, checkpointer: CheckpointerProtocol | None
    ) -> RunResult:
        if not self._busy.acquire(blocking=False):
            raise RunError(
                "this runner is running already; a tree has one position, so make one runner per run"
            )
        try:
            store = ThreadStore(
                self._configured() if checkpointer is None else checkpointer,
                options.fork_to or options.thread_id,
            )
            session = self._open_session(store)
            return await self._hold_and_run(session, ticket, options)
        finally:
            self._tickets.discard(ticket)
            self._busy.release()

    def _configured(self) -> CheckpointerProtocol | None:
        if self._config.enabled and self._own_checkpointer is None:
            self._own_checkpointer = create_checkpointer(self._config)
        return self._own_checkpointer

    def _open_session(self, store: ThreadStore) -> Session:
        index = TreeIndex(self.root)
        check_composites(self.root, whole=True)
        if store.keeps:
            index.check_supported()
        return Session(
            index,
            self.state_manager,
            store,
            self.event_bus,
            context=self._context,
            tick_period=self._tick_period,
            livelock_after=self.livelock_after,
        )

    async def _hold_and_run(self, session: Session, ticket: _Ticket, options: RunOptions) -> RunResult:
        hold = ThreadHold(session.store, session.fail_from_any_thread)
        session.store.listen(self.event_bus.emit)
        try:
            try:
                await hold.take()
                return await self._bind_and_run(session, ticket, options)
            finally:
                await hold.release()
        finally:
            await session.store.close()
            if not self.event_bus.idle:
                await asyncio.to_thread(self.event_bus.drain, 2.0)

    async def _bind_and_run(self, session: Session, ticket: _Ticket, options: RunOptions) -> RunResult:
        unsubscribe = self.state_manager.subscribe(session.state_changed)
        for leaf in session.index.leaves:
            leaf.bind(session)
        self._session = ticket.session = session
        session.cancelled = session.cancelled or ticket.cancelled
        keep = False
        try:
            result = await self._main(session, options)
            keep = result.outcome == "suspended"
            return result
        finally:
            session.questions.close(keep=keep)
            await session.leaves.stop()
            for leaf in session.index.leaves:
                leaf.bind(None)
            unsubscribe()
            if not keep:
                self._session = None

    async def _main(self, session: Session, options: RunOptions) -> RunResult:
        origin = await self._origin(session, options)
        restored = await self._try_restore_from_checkpoint(session, options, origin)
        if not restored:
            self.state_manager.initialize(options.input_data)
            session.start_fresh()
        elif session.finished or origin is not None:  # a run that just goes on was given its input before
            self.state_manager.update(options.input_fields)
        for question_id, value in options.answers.items():
            session.questions.accept(question_id, value)
        if origin is not None:
            await self._travel(session.store, options)
        if restored and session.finished:
            if options.input_data is None:
                session.tell_stored()
                return self._result(session, "completed")
            session.start_round()
        elif restored:
            await self._go_on(session)
        try:
            outcome = await self._loop(session, options, tick_first=not restored or session.finished)
        except asyncio.CancelledError:
            await self._end(session, "cancelled")
            raise
        await self._end(session, outcome)
        return self._result(session, "completed" if session.finished else outcome)

    async def _go_on(self, session: Session) -> None:
        """Let the leaves start again that were RUNNING, without a tick: none was due."""
        if session.questions.undelivered or not session.identity.saved:
            await self._save_checkpoint_now(session)
            self._deliver_answers(session)
        session.leaves.resume()
        session.leaves.start()

    async def _loop(self, session: Session, options: RunOptions, *, tick_first: bool) -> Outcome:
        """Tick and wait in turn until the run ends."""
        tick_now = tick_first
        settling = 0
        while not session.cancelled:
            if tick_now:
                session.tick()
                limit = options.max_ticks is not None and session.ticks >= options.max_ticks
                await self._maybe_save_checkpoint(session, options.interval, last=session.finished or limit)
                if session.finished:
                    return "completed"
                if limit:
                    return "max_ticks"
                session.leaves.start()
            causes = await session.schedule.next_causes()
            if session.failure is not None:
                raise session.failure
            if session.questions.undelivered:
                await self._save_checkpoint_now(session)
                self._deliver_answers(session)
            elif options.mode is SuspensionMode.YIELD and session.questions.waiting:
                settling += 1
                if not session.leaves.any_done or settling > _SETTLE_TICKS:
                    return "suspended"
            elif session.questions.fresh:
                await self._save_checkpoint_now(session)
            tick_now = calls_for_tick(causes)
        return "cancelled"

    async def _end(self, session: Session, outcome: Outcome) -> None:
        """Commit the end of a run whose root is still RUNNING."""
        if outcome == "completed":
            return
        if outcome == "suspended":
            await self._save_checkpoint_now(session, outcome)
            await session.leaves.drain_effects(self.drain_timeout)
        session.questions.close(keep=True)
        if outcome == "suspended" and session.leaves.any_done:
            session.tick()
            await self._save_checkpoint_now(session, "completed" if session.finished else outcome)
        elif outcome == "cancelled" or session.questions.undelivered:
            await self._save_checkpoint_now(session, outcome)

    def _result(self, session: Session, outcome: Outcome) -> RunResult:
        return RunResult(
            status=session.index.root.status,
            outcome=outcome,
            step=session.step,
            ticks=session.ticks,
            pending=session.questions.pending if outcome in ("suspended", "max_ticks") else (),
            state=self.state_manager.get(),
            errors=dict(session.errors),
        )

    def _deliver_answers(self, session: Session) -> None:
        for question_id in session.questions.deliver():
            session.emit("question.answered", {"thread_id": session.thread_id, "id": question_id})

    # Restore

    async def _origin(self, session: Session, options: RunOptions) -> dict[str, Any] | None:
        """Return the step to go back to, if any: all is checked against it before anything is cut or copied.

        Raises:
            CapabilityError: The back end keeps no history.
            CheckpointNotFoundError: No such thread or step.
        """
        if options.fork_to is None and options.from_step is None:
            return None
        store = session.store
        wanted = "from_step=" if options.fork_to is None else "fork_to="
        origin = await store.load_from(store.history(wanted), options.thread_id, options.from_step)
        if origin is None:
            raise no_such_step(options.thread_id, options.from_step)
        if options.truncate:
            try:
                newest = await store.load()
            except CheckpointCorruptError:  # cutting it off is the way out of that
                newest = None
            store.go_back_to(origin)
            session.identity.leave_behind(newest and newest["runtime_metadata"].get(RUNNER_KEY, {}))
        return origin

    async def _travel(self, store: ThreadStore, options: RunOptions) -> None:
        """Go back to an earlier step, in a copy or in place."""
        if options.fork_to is not None:
            fork = store.history("fork_to=").fork_thread
            await store.writer.call(fork, options.thread_id, options.fork_to, step=options.from_step)
        else:
            truncate = store.history("from_step=").truncate_thread
            await store.writer.call(truncate, options.thread_id, step=options.from_step)

    async def _try_restore_from_checkpoint(
        self, session: Session, options: RunOptions, origin: dict[str, Any] | None
    ) -> bool:
        """Take up `origin`, or else the newest checkpoint; return whether there was one to take up.

        Raises:
            CheckpointNotFoundError: There is none, and the policy is REQUIRED.
            TreeChangedError: The tree is not the one that was saved, unless a new round begins.
            StateError: The saved state does not fit the schema.
        """
        envelope = await session.store.load() if origin is None else origin
        if envelope is None:
            if options.policy is RestorePolicy.REQUIRED:
                raise CheckpointNotFoundError(
                    f"thread {session.thread_id!r} has no checkpoint; RestorePolicy.AUTO would start it"
                )
            return False
        session.step = session.saved_step = envelope["step"]
        if options.policy is RestorePolicy.NEVER:
            return False
        metadata, tree = dict(envelope["runtime_metadata"]), envelope["tree"] or {}
        runner = metadata.pop(RUNNER_KEY, {})
        position = runner.get("tree", {})
        difference = session.index.difference(position)
        if difference is not None:
            ended = tree.get("0") in (Status.SUCCESS.name, Status.FAILURE.name)
            if not ended or options.input_data is None:
                raise tree_changed(difference, options.thread_id, ended=ended)
            # Nothing of a finished tree is needed but its result: the next round may have another tree.
            tree, position = {"0": tree["0"]}, {}
        try:
            self.state_manager.initialize(envelope["state"])
        except StateError as error:
            raise state_refused(error, options.thread_id, envelope["step"]) from error
        self.state_manager.restore_runtime_metadata(metadata)
        await session.load_metadata(runner)
        session.position.reset()
        self._restore_tree_status(session, tree, position)
        self._repair_running_composite_pointers(session, position)
        session.index.mark()
        told = {"has_state": bool(envelope["state"]), "has_tree_state": bool(tree)}
        session.emit("checkpoint.restored", {"thread_id": session.thread_id, **told})
        return True

    def _restore_tree_status(
        self, session: Session, tree_state: Mapping[str, str], position: Mapping[str, Any]
    ) -> None:
        """Set every node's status, counters and deadlines, by attributes alone."""
        session.position.restore_statuses(tree_state)
        session.position.restore_attributes(position)

    def _repair_running_composite_pointers(self, session: Session, position: Mapping[str, Any]) -> None:
        """Set `current_child` of every composite, so that the next tick goes on at the right child."""
        session.position.restore_pointers(position)

    # Save

    async def _maybe_save_checkpoint(self, session: Session, interval: int, *, last: bool) -> None:
        """Save after a tick, if it is the interval's turn, the last tick, or the first of a new identity."""
        is_due = session.total_ticks % interval == 0
        if is_due or last or not session.identity.saved:
            outcome = "completed" if session.finished else "running"
            await self._save(session, outcome, forced=last or not is_due)

    async def _save_checkpoint_now(self, session: Session, outcome: str = "running") -> None:
        """Save at once, between ticks: on suspension, an answer, or cancellation."""
        await self._save(session, outcome, forced=True)

    async def _save(self, session: Session, outcome: str, *, forced: bool) -> None:
        session.identity.saved = True
        session.questions.fresh = False
        if not session.store.keeps:
            return
        # All of it is read before the first await: leaves that still run cannot mix two moments.
        session.step = max(session.step, session.saved_step + 1)
        state = self.state_manager.dump_checkpoint()
        tree = session.position.statuses()
        metadata = session.metadata(outcome)
        step = session.saved_step = session.step
        # Even when this call is cancelled the save goes on, and the step is taken.
        await session.store.save(step, state, tree, metadata)
        session.emit("checkpoint.saved", {"thread_id": session.thread_id, "step": step, "forced": forced})
        await session.journal.trim(session.leaves.has_ended, now=session.finished)
