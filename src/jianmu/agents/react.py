"""An agent that thinks, acts and checks until it has an answer, as a behaviour tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jianmu.agents.act import act
from jianmu.agents.approve import approve
from jianmu.agents.arguments import MemoryUse, check_agent
from jianmu.agents.chat_model import ChatModel, Usage
from jianmu.agents.check import answered, finish, give_up
from jianmu.agents.events import AgentResult, ApprovalNeeded, TurnFinished
from jianmu.agents.outcome import raise_failure, result_of
from jianmu.agents.record import record
from jianmu.agents.state import AgentState
from jianmu.agents.stream import AgentStream
from jianmu.agents.think import think
from jianmu.agents.thread import StoredTurn, load_turn
from jianmu.agents.tool_calls import with_dependencies
from jianmu.agents.turn import Turn
from jianmu.errors import (
    ApprovalPendingError,
    CheckpointNotFoundError,
    TreeChangedError,
    UnknownQuestionError,
)
from jianmu.events import RuntimeEventBus
from jianmu.memory.checkpoint.base import CheckpointerProtocol
from jianmu.memory.checkpoint.in_memory import InMemoryCheckpointer
from jianmu.memory.context import (
    ContextBuilder,
    ContextProvider,
    MemoryProvider,
    SkillProvider,
    StateHistoryProvider,
    SystemPromptProvider,
    TokenBudget,
)
from jianmu.memory.service import MemoryService
from jianmu.messages import Message
from jianmu.runtime import (
    ReactiveRunner,
    RestorePolicy,
    Retry,
    RunResult,
    Selector,
    Sequence,
    Status,
    SuspensionMode,
)
from jianmu.skills import Skill, create_skill_tools
from jianmu.state import StateManager
from jianmu.tools import Tool, ToolSet

__all__ = ["MemoryUse", "ReActAgent"]


class ReActAgent:
    """A model with tools and memory, whose every step survives a crash.

    The tree, built from the public leaves of this package::

        agent (Sequence)
        ├── work (Selector)
        │   ├── until answered (Retry, `max_steps` times)
        │   │   └── step (Sequence): think → approve → act → check
        │   └── give up                              at the step limit
        ├── record                                   stores the turn with memory_use="auto" or "both"
        └── finish

    Each completion and each tool's result is saved the moment it is there, so that a run killed at any
    moment asks for neither again. One agent serves any number of threads at the same time.

    Args:
        model: Who thinks.
        tools: What it may call; a tool with `requires_approval` waits for a person.
        system_prompt: What the model is told first.
        skills: Folders of instructions; the prompt names them, the model opens them by ``skill_open``.
        memory: Facts that outlive the conversation.
        memory_use: ``"tools"``: the model gets ``memory_search`` and ``memory_add``; ``"auto"``: memories
            that fit the user's message are put into the prompt, and each turn is stored; ``"both"``.
        checkpointer: Where threads are kept; None = in this process only.
        context: Builds the prompts; None = system prompt, skills, history and memories, within `budget`.
        budget: The most tokens of a prompt, or a `TokenBudget`; None = no limit.
        max_steps: Completions in one turn at most.
        parallel_tools: How many calls of one completion run at the same time, whatever they do; 1 = one after
            the other. None = tools marked `read_only` run side by side, any other alone and in the order of
            the calls, so that a crash leaves at most one effect in doubt.
        event_bus: Gets the runner's events, and figures (never content) of models and tools.
        clock: Where a message's time comes from, aware UTC.

    Raises:
        ConfigError: An argument of the wrong kind, a limit below 1, two tools with one name.

    Example::

        agent = ReActAgent(OpenAIChatModel("gpt-4.1-mini"), memory=service, checkpointer=checkpointer)
        result = await agent.run("What do I like?", thread_id="ada")
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        tools: Iterable[Tool | ToolSet] = (),
        system_prompt: str = "You are a helpful assistant.",
        skills: Iterable[Skill] = (),
        memory: MemoryService | None = None,
        memory_use: MemoryUse = "tools",
        checkpointer: CheckpointerProtocol | None = None,
        context: ContextBuilder | None = None,
        budget: TokenBudget | int | None = None,
        max_steps: int = 20,
        parallel_tools: int | None = None,
        event_bus: RuntimeEventBus | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        check_agent(
            model=model,
            memory=memory,
            memory_use=memory_use,
            checkpointer=checkpointer,
            limits={"max_steps": max_steps, "parallel_tools": parallel_tools},
        )
        self.model = model
        self.memory = memory
        self.memory_use = memory_use
        self.skills = tuple(skills)
        self.tools = ToolSet([*tools, create_skill_tools(self.skills)])
        if memory is not None and memory_use != "auto":
            self.tools = ToolSet([self.tools, *memory.as_tools()])
        self.checkpointer = checkpointer if checkpointer is not None else InMemoryCheckpointer()
        self.context = context if context is not None else self._default_context(system_prompt, budget)
        self._max_steps = max_steps
        self._parallel_tools = parallel_tools
        self._event_bus = event_bus
        self._clock = clock
        self._running: dict[str, Turn] = {}

    async def run(
        self,
        text: str | None = None,
        *,
        thread_id: str = "default",
        message_id: str | None = None,
        answers: Mapping[str, Any] | None = None,
        deps: Any = None,
    ) -> AgentResult:
        """Say `text` on a thread and return how the turn ended.

        A turn that was cut off before is ended first: with the same `text` (or None) it is that turn, so
        that a program can simply be started again; with another `text` the new turn follows it.

        Args:
            text: What the user says; None goes on with the turn that was cut off or waits for a decision.
            thread_id: The conversation.
            message_id: The caller's own id of this message: a turn that the thread has under it already is
                not begun again, its result is returned. Without one, an equal text after a finished turn is a
                new turn.
            answers: Decisions by the id of a `PendingApproval`: True, False, or
                ``{"approved": False, "reason": "..."}``.
            deps: What the tools' injected parameters get; never saved: pass it again to go on.

        Raises:
            ChatModelError: The model failed; the thread keeps the message, and the same call tries again.
            ApprovalPendingError: `text` is new and the turn before still waits for a decision.
            UnknownQuestionError: An answer to no open question.
        """
        result: AgentResult | None = None
        async with self.stream(
            text, thread_id=thread_id, message_id=message_id, answers=answers, deps=deps
        ) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    result = event.result
        assert result is not None
        return result

    def stream(
        self,
        text: str | None = None,
        *,
        thread_id: str = "default",
        message_id: str | None = None,
        answers: Mapping[str, Any] | None = None,
        deps: Any = None,
    ) -> AgentStream:
        """Do as `run` does, and give out each event as it happens; the last one is `TurnFinished`.

        Leaving the stream early cancels the run at its last saved step; `AgentStream.interrupt` ends the turn
        properly with what there is. Arguments and errors as for `run`.
        """
        return AgentStream(
            lambda turn: self._registered(turn, text, thread_id, message_id, answers),
            lambda emit: Turn(emit, deps=deps, event_bus=self._event_bus),
        )

    async def aclose(self) -> None:
        """Free the model's connections in the running event loop; the agent can be used again."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    def cancel(self, thread_id: str = "default") -> bool:
        """Stop the turn that runs on a thread in this process, at its last saved step; from any thread.

        Its `run` returns with outcome ``"cancelled"``, and the same call later goes on with the turn.
        Cancelling the task that awaits `run` leaves the thread in the same state.

        Returns:
            Whether one was running.
        """
        turn = self._running.get(thread_id)
        if turn is not None:
            turn.cancel()
        return turn is not None

    def interrupt(self, thread_id: str = "default") -> bool:
        """End the turn that runs on a thread in this process properly, with what there is; from any thread.

        Returns:
            Whether one was running.
        """
        turn = self._running.get(thread_id)
        if turn is not None:
            turn.interrupt_from_any_thread()
        return turn is not None

    async def history(self, thread_id: str = "default") -> list[Message]:
        """Return the messages of a thread as it is stored, oldest first; [] for a thread that has none."""
        stored = await self.stored_turn(thread_id)
        return [] if stored is None else list(stored.state.messages)

    async def stored_turn(self, thread_id: str) -> StoredTurn | None:
        """Return the newest turn of a thread as it is stored, or None."""
        return await load_turn(self.checkpointer, thread_id, self.state_manager)

    def tree(self, turn: Turn, tools: ToolSet) -> Sequence:
        """Return a new tree for one run; override it to add leaves of your own."""
        step = Sequence(
            "step",
            memory=True,
            children=[
                think(self.model, list(tools), turn),
                approve(tools),
                act(tools, turn, self._parallel_tools),
                answered(name="check"),
            ],
        )
        work = Selector(
            "work",
            memory=True,
            children=[Retry("until answered", step, self._max_steps), give_up(name="give up")],
        )
        recorder = record(self.memory if self.memory_use != "tools" else None, turn)
        return Sequence("agent", memory=True, children=[work, recorder, finish()])

    def state_manager(self) -> StateManager[Any]:
        """Return a new state manager; override it to use a subclass of `AgentState`."""
        return StateManager(AgentState)

    def _default_context(self, system_prompt: str, budget: TokenBudget | int | None) -> ContextBuilder:
        providers: list[ContextProvider] = [SystemPromptProvider(system_prompt)] if system_prompt else []
        providers += [SkillProvider(self.skills, detail="headline"), StateHistoryProvider()]
        if self.memory is not None and self.memory_use != "tools":
            providers.append(MemoryProvider(self.memory))
        return ContextBuilder(providers, budget=budget, tools=self.tools)

    async def _registered(
        self,
        turn: Turn,
        text: str | None,
        thread_id: str,
        message_id: str | None,
        answers: Mapping[str, Any] | None,
    ) -> None:
        """Do as `_turns` does, and let `cancel` and `interrupt` find the turn; of two the first is found."""
        mine = self._running.setdefault(thread_id, turn)
        try:
            await self._turns(turn, text, thread_id, message_id, answers)
        finally:
            if mine is turn:
                del self._running[thread_id]

    async def _turns(
        self,
        turn: Turn,
        text: str | None,
        thread_id: str,
        message_id: str | None,
        answers: Mapping[str, Any] | None,
    ) -> None:
        stored = await self.stored_turn(thread_id)
        if stored is None and text is None:
            raise CheckpointNotFoundError(f"thread {thread_id!r} has no turn to go on with; give text")
        again = stored is not None and (text is None or stored.is_about(text, message_id))
        if stored is not None and stored.unfinished:
            result = await self._run(turn, None, thread_id, answers)
            if result.pending and not again:
                waiting = ", ".join(pending.id for pending in result.pending)
                raise ApprovalPendingError(
                    f"thread {thread_id!r} waits for decisions; pass answers= for {waiting} first"
                )
            turn.emit(TurnFinished(result))
            if again or result.outcome == "cancelled":
                return
            turn.begin_next()
        failed = stored is not None and not stored.unfinished and stored.state.error is not None
        if again and not failed and (text is None or message_id is not None or answers):
            turn.emit(TurnFinished(await self._run(turn, None, thread_id, answers)))
            return
        if answers and (stored is None or not stored.unfinished):
            raise UnknownQuestionError(f"thread {thread_id!r} waits for no decision on {', '.join(answers)}")
        message = Message(role="user", content=text or "", id=message_id, time=self._clock())
        fresh = {"usage": Usage(), "decisions": {}, "stopped": None, "error": None}
        said = {} if failed and again else {"messages": [message]}
        turn.emit(TurnFinished(await self._run(turn, {**fresh, **said}, thread_id, None)))

    async def _run(
        self, turn: Turn, data: dict[str, Any] | None, thread_id: str, answers: Mapping[str, Any] | None
    ) -> AgentResult:
        run = await self._run_tree(turn, data, thread_id, answers)
        raise_failure(turn, run)
        result = result_of(run, thread_id)
        for approval in result.pending:
            turn.emit(ApprovalNeeded(approval))
        return result

    async def _run_tree(
        self, turn: Turn, data: dict[str, Any] | None, thread_id: str, answers: Mapping[str, Any] | None
    ) -> RunResult:
        runner = ReactiveRunner(
            self.tree(turn, with_dependencies(self.tools, turn.deps)),
            self.state_manager(),
            event_bus=self._event_bus,
            context=self.context,
        )
        turn.enter(runner)
        run = partial(
            runner.run,
            checkpointer=self.checkpointer,
            thread_id=thread_id,
            suspension_mode=SuspensionMode.YIELD,
        )
        try:
            under_way = run(data, answers=answers)
            if turn.cancelled:
                runner.cancel()
            return await under_way
        except TreeChangedError:
            stored = await self.stored_turn(thread_id)
            if stored is None or stored.unfinished or answers:
                raise
        if data is None:  # the turn is over, and its answer needs no tree
            status = Status.SUCCESS if stored.state.error is None else Status.FAILURE
            return RunResult(status, "completed", step=0, ticks=0, pending=(), state=stored.state)
        # Between two turns a tree may change: no place in it is lost, and the state goes on.
        kept = {name: getattr(stored.state, name) for name in type(stored.state).model_fields}
        messages = [*kept["messages"], *data.get("messages", ())]
        return await run({**kept, **data, "messages": messages}, restore_policy=RestorePolicy.NEVER)
