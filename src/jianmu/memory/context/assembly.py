"""How a budget is spent: first what must be there, then each section by priority, the history last."""

from __future__ import annotations

from dataclasses import dataclass

from jianmu.errors import BudgetError
from jianmu.memory.context.budget import TokenBudget
from jianmu.memory.context.counting import MessageCounter
from jianmu.memory.context.drafts import Draft, Fitted
from jianmu.memory.context.history import HistoryDraft
from jianmu.memory.context.providers.base import ContextProvider
from jianmu.memory.context.report import ContextReport, SectionReport
from jianmu.messages import Message

__all__ = ["Section", "assemble"]


@dataclass(eq=False)
class Section:
    """One provider, what it gave, and what of it is in the prompt."""

    provider: ContextProvider
    draft: Draft | None
    error: str | None = None
    limit: int | None = None
    fitted: Fitted | None = None

    def fit(self, limit: int | None) -> int:
        """Make it fit and return what it costs."""
        self.limit = limit
        self.fitted = Fitted() if self.draft is None else self.draft.fit(limit)
        return self.fitted.tokens

    def report(self) -> SectionReport:
        """Return its part of the report."""
        fitted = self.fitted or Fitted()
        return SectionReport(
            self.provider.name,
            fitted.tokens,
            len(fitted.messages),
            self.limit,
            tuple(fitted.changes),
            self.error,
        )


def assemble(
    sections: list[Section], tools: tuple[object, ...], counter: MessageCounter, budget: TokenBudget | None
) -> tuple[list[Message], ContextReport]:
    """Return the prompt's messages and the report.

    Raises:
        BudgetError: The budget is too small for what may never be dropped.
    """
    tool_tokens = counter.tools(tools)
    fixed = tool_tokens + counter.overhead.request
    if budget is None:
        for section in sections:
            section.fit(None)
    else:
        _spend(sections, budget, tool_tokens, fixed)
    ordered = [s for place in ("prefix", "history", "suffix") for s in sections if s.provider.place == place]
    messages = [message for s in ordered if s.fitted for message in s.fitted.messages]
    report = ContextReport(
        counter=counter.name,
        total=fixed + sum(s.fitted.tokens for s in ordered if s.fitted),
        available=None if budget is None else budget.available,
        max_tokens=None if budget is None else budget.max_tokens,
        reserve_output=0 if budget is None else budget.reserve_output,
        tools=tool_tokens,
        overhead=counter.overhead.request,
        sections=tuple(s.report() for s in ordered),
    )
    return messages, report


def _spend(sections: list[Section], budget: TokenBudget, tool_tokens: int, fixed: int) -> None:
    required = [s for s in sections if s.provider.required]
    histories = [s for s in sections if isinstance(s.draft, HistoryDraft)]
    optional = sorted(
        (s for s in sections if not s.provider.required and s not in histories),
        key=lambda s: -s.provider.priority,
    )
    needed = {s.provider.name: s.fit(None) for s in required}
    for section in histories:
        needed |= _needs(section)
    left = budget.available - fixed - sum(needed.values())
    if left < 0:
        raise BudgetError(_too_small(budget, tool_tokens, fixed, needed))
    # `left` is what is neither required nor spent; the history's own needs are already taken out of it.
    for section in (s for s in optional if s.provider.place == "prefix"):
        left -= section.fit(min(left, section.provider.limit(budget.available)))
    suffix = [s for s in optional if s.provider.place != "prefix"]
    aside = 0
    for section in (s for s in sections if s in suffix or (s in required and s.provider.place == "suffix")):
        aside += min(left - aside, _set_aside(section, budget.available, left - aside))
    for section in histories:
        own = sum(_needs(section).values())
        share = min(left - aside + own, max(own, section.provider.limit(budget.available)))
        left -= section.fit(share) - own
    for section in suffix:
        left -= section.fit(min(left, section.provider.limit(budget.available)))


def _set_aside(section: Section, available: int, left: int) -> int:
    """Return what is kept free for a section after the history, so that the history's share stays the same.

    With a cap that is the cap, used or not. Without, it is what it costs, in sixteenths of the budget.
    """
    if section.provider.required:
        spent = section.fitted.tokens if section.fitted else 0
        return _steps(spent, available) - spent
    if section.provider.cap is not None:
        return section.provider.limit(available)
    return _steps(section.fit(left), available)


def _steps(tokens: int, available: int) -> int:
    step = max(1, available // 16)
    return -(-max(1, tokens) // step) * step


def _needs(section: Section) -> dict[str, int]:
    if not isinstance(section.draft, HistoryDraft):
        return {}
    name = section.provider.name
    return {
        f"{name}: system messages": section.draft.head_cost,
        f"{name}: the user's newest message": section.draft.newest_cost,
    }


def _too_small(budget: TokenBudget, tool_tokens: int, fixed: int, needed: dict[str, int]) -> str:
    parts = [f"{name} {tokens}" for name, tokens in needed.items() if tokens]
    parts += [f"tool schemas {tool_tokens}"] if tool_tokens else []
    parts.append(f"the request itself {fixed - tool_tokens}")
    return (
        f"{budget.available} tokens are available (max_tokens={budget.max_tokens}, "
        f"reserve_output={budget.reserve_output}, correction={budget.correction:g}), but "
        f"{fixed + sum(needed.values())} may never be dropped: {', '.join(parts)}. "
        "Raise max_tokens, lower reserve_output, or shorten one of these"
    )
