"""State, memory, tools and knowledge become a prompt that fits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jianmu.errors import ConfigError, ProviderError
from jianmu.memory.context.assembly import Section, assemble
from jianmu.memory.context.bridge import LoopBridge
from jianmu.memory.context.budget import TokenBudget
from jianmu.memory.context.counting import MessageCounter, default_counter
from jianmu.memory.context.drafts import draft_of
from jianmu.memory.context.filters.base import Filter, RequestFilter, apply_filters
from jianmu.memory.context.history import HistoryPreparer
from jianmu.memory.context.providers import (
    ContextProvider,
    FunctionProvider,
    KnowledgeProvider,
    MemoryProvider,
    Provided,
    SkillProvider,
    StateHistoryProvider,
    SystemPromptProvider,
    ToolsDescProvider,
)
from jianmu.memory.context.providers.recall import KnowledgeBase, MemorySource
from jianmu.memory.context.providers.skill import SkillLike
from jianmu.memory.context.report import ContextReport
from jianmu.memory.context.request import ContextRequest, read_messages, view_of
from jianmu.memory.long_term.base import LongTermMemoryProtocol
from jianmu.messages import Message
from jianmu.state import StateManager

__all__ = ["BuiltContext", "ContextBuilder", "Provider"]

Provider: TypeAlias = ContextProvider | Callable[[ContextRequest], Provided | Awaitable[Provided]]
"""A provider, or a function of the request, which then stands after the history."""


@dataclass(frozen=True)
class BuiltContext:
    """A prompt.

    Attributes:
        messages: What to send, in order; see `jianmu.messages` for each provider's form of it.
        report: What it costs, and what was left out.
        tools: The tools whose schemas were counted, to be sent with the messages.
        updates: What to write to the state: a summary that was paid for. Already written if the state was a
            StateManager.
        stable: How many messages at the beginning come before anything recalled: the part that stays from
            turn to turn, and so the place for a provider's cache mark.
    """

    messages: tuple[Message, ...]
    report: ContextReport
    tools: tuple[object, ...] = ()
    updates: Mapping[str, Any] = field(default_factory=dict)
    stable: int = 0


class ContextBuilder:
    """Builds prompts from providers, through filters, within a budget.

    The order is: providers of the prefix (system prompt, skill, tools), the history, then what changes from
    turn to turn (memories, knowledge, functions). Building is pure: the same input gives the same messages,
    and what was built, given as the state, gives them again.

    Args:
        providers: The sources, in the order of the prompt within their place.
        filters: Functions from messages to messages, applied to the history in order; tool calls and their
            results are always kept together.
        budget: A `TokenBudget`, a number of tokens, or None for no limit.
        tools: What the model may call, unless `build` is told.

    Raises:
        ConfigError: Two providers have one name, or two are a history.
    """

    def __init__(
        self,
        providers: Iterable[Provider],
        filters: Iterable[Filter | RequestFilter] = (),
        budget: TokenBudget | int | None = None,
        *,
        tools: Iterable[object] = (),
    ) -> None:
        self.providers = tuple(
            p if isinstance(p, ContextProvider) else FunctionProvider(p) for p in providers
        )
        self.filters = tuple(filters)
        self.budget = TokenBudget(budget) if isinstance(budget, int) else budget
        self.tools = tuple(tools)
        names = [provider.name for provider in self.providers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(f"two providers are named {', '.join(twice)}; give each its own name")
        self._history = self._find_history()
        self._everywhere = tuple(f for f in self.filters if getattr(f, "everywhere", False))
        self._counter = MessageCounter(default_counter()) if self.budget is None else self.budget.counter
        block = 1.0 if self.budget is None else self.budget.block
        self._preparer = HistoryPreparer(self.filters, self._counter, block)

    def _find_history(self) -> StateHistoryProvider | None:
        found = [provider for provider in self.providers if provider.place == "history"]
        wrong = [p.name for p in found if not isinstance(p, StateHistoryProvider)]
        if len(found) > 1 or wrong:
            raise ConfigError(
                "a builder has at most one history, a StateHistoryProvider; others are prefix or suffix"
            )
        return found[0] if found and isinstance(found[0], StateHistoryProvider) else None

    @classmethod
    def for_react(
        cls,
        system_prompt: str | Callable[[ContextRequest], str] = "",
        *,
        tools: Iterable[object] = (),
        memory: MemorySource | LongTermMemoryProtocol | None = None,
        knowledge: KnowledgeBase | None = None,
        skills: SkillLike | Iterable[SkillLike] = (),
        filters: Iterable[Filter | RequestFilter] = (),
        budget: TokenBudget | int | None = None,
        history_field: str = "messages",
        describe_tools: bool = True,
        more: Iterable[Provider] = (),
    ) -> ContextBuilder:
        """Return a builder for an agent that reasons and calls tools.

        Args:
            system_prompt: The system prompt, or a function of the request.
            tools: What the model may call, unless `build` is told.
            memory: Recalled from for the newest user message; None leaves it to the model and its memory
                tools.
            knowledge: Recalled from likewise.
            skills: Skills whose instructions are in the prompt.
            filters: Filters of the history.
            budget: A `TokenBudget`, a number of tokens, or None.
            history_field: The state's field that holds the messages.
            describe_tools: Whether the prompt names the tools in words too.
            more: Providers of your own.
        """
        providers: list[Provider] = [SystemPromptProvider(system_prompt)] if system_prompt else []
        providers.append(SkillProvider(skills))
        if describe_tools:
            providers.append(ToolsDescProvider())
        providers.append(StateHistoryProvider(history_field))
        if memory is not None:
            providers.append(MemoryProvider(memory))
        if knowledge is not None:
            providers.append(KnowledgeProvider(knowledge))
        return cls([*providers, *more], filters, budget, tools=tools)

    @classmethod
    def for_skill(
        cls,
        skill: SkillLike | Iterable[SkillLike],
        system_prompt: str | Callable[[ContextRequest], str] = "",
        *,
        tools: Iterable[object] = (),
        memory: MemorySource | LongTermMemoryProtocol | None = None,
        knowledge: KnowledgeBase | None = None,
        filters: Iterable[Filter | RequestFilter] = (),
        budget: TokenBudget | int | None = None,
        history_field: str = "messages",
        describe_tools: bool = True,
        more: Iterable[Provider] = (),
    ) -> ContextBuilder:
        """Return a builder for an agent that carries out a skill; its instructions are never dropped.

        Args:
            skill: The skill, or several.
            system_prompt: What comes before it.
            tools: As for `for_react`, and so are the others.
            memory: Recalled from for the newest user message.
            knowledge: Recalled from likewise.
            filters: Filters of the history.
            budget: A `TokenBudget`, a number of tokens, or None.
            history_field: The state's field that holds the messages.
            describe_tools: Whether the prompt names the tools in words too.
            more: Providers of your own.
        """
        return cls.for_react(
            system_prompt,
            tools=tools,
            memory=memory,
            knowledge=knowledge,
            skills=skill,
            filters=filters,
            budget=budget,
            history_field=history_field,
            describe_tools=describe_tools,
            more=more,
        )

    def build(
        self,
        state: object,
        *,
        thread_id: str | None = None,
        tools: Iterable[object] | None = None,
        **values: Any,
    ) -> BuiltContext:
        """Return the prompt for a state.

        Args:
            state: A StateManager, a model, a mapping, or a sequence of messages.
            thread_id: The conversation; providers may read it.
            tools: What the model may call; the builder's own by default.
            values: More that providers may read, as ``request.values``.

        Raises:
            BudgetError: The budget is too small for what may never be dropped; the message has the numbers.
            ProviderError: A provider that may not fail did; the cause is chained.
            ContextError: The history is no sequence of messages, or something is asynchronous: use `abuild`.
        """
        built = self._build(self._request(view_of(state), thread_id, tools, values))
        _save(state, built.updates)
        return built

    async def abuild(
        self,
        state: object,
        *,
        thread_id: str | None = None,
        tools: Iterable[object] | None = None,
        **values: Any,
    ) -> BuiltContext:
        """Like `build`, off the event loop; providers and the summarising function may be asynchronous.

        The state is read and written in the caller's thread, awaitables run in the caller's loop.
        """
        bridge = LoopBridge(asyncio.get_running_loop())
        request = self._request(view_of(state), thread_id, tools, values, bridge.wait)
        try:
            built = await asyncio.to_thread(self._build, request)
        finally:
            bridge.close()
        _save(state, built.updates)
        return built

    def _request(
        self,
        view: object,
        thread_id: str | None,
        tools: Iterable[object] | None,
        values: Mapping[str, Any],
        wait: Callable[[Awaitable[Any]], Any] | None = None,
    ) -> ContextRequest:
        return ContextRequest(
            state=view,
            messages=() if self._history is None else read_messages(view, self._history.field),
            tools=self.tools if tools is None else tuple(tools),
            counter=self._counter,
            thread_id=thread_id,
            values=dict(values),
            wait=wait,
        )

    def _build(self, request: ContextRequest) -> BuiltContext:
        sections = [self._section(provider, request) for provider in self.providers]
        messages, report = assemble(sections, request.tools, self._counter, self.budget)
        after = sum(len(s.fitted.messages) for s in sections if s.fitted and s.provider.place == "suffix")
        return BuiltContext(tuple(messages), report, request.tools, request.updates, len(messages) - after)

    def _section(self, provider: ContextProvider, request: ContextRequest) -> Section:
        if provider is self._history:
            return Section(provider, self._preparer.draft(request))

        def polish(messages: list[Message]) -> list[Message]:
            return apply_filters(messages, self._everywhere, request)[0]

        try:
            given = request.resolve(provider.provide(request))
            return Section(provider, draft_of(provider, given, self._counter, polish))
        except Exception as error:  # foreign code: raised again as ours, or reported
            what = f"provider {provider.name!r} failed: {type(error).__name__}: {error}"
            if provider.on_error == "raise":
                raise ProviderError(what) from error
            return Section(provider, None, error=f"{type(error).__name__}: {error}")


def _save(state: object, updates: Mapping[str, Any]) -> None:
    if updates and isinstance(state, StateManager):
        state.update(updates)
