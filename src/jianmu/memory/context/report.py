"""What a prompt is made of, and what did not get into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Change", "ContextReport", "SectionReport"]


@dataclass(frozen=True)
class Change:
    """Something that is not as its source gave it.

    Attributes:
        kind: ``dropped``, ``cut`` (shortened), ``added`` (by a repair) or ``moved``.
        reason: Why, in words.
        messages: How many messages (or entries of a memory or knowledge section).
        tokens: How many tokens that saved; negative for what was added.
    """

    kind: Literal["dropped", "cut", "added", "moved"]
    reason: str
    messages: int = 1
    tokens: int = 0


@dataclass(frozen=True)
class SectionReport:
    """One provider's part.

    Attributes:
        name: The provider's name.
        tokens: What it costs.
        messages: How many messages it is.
        limit: The most it might have cost, or None without a budget.
        changes: What was dropped, cut, added or moved, and why.
        error: Why the provider gave nothing, if it failed and may.
    """

    name: str
    tokens: int
    messages: int
    limit: int | None = None
    changes: tuple[Change, ...] = ()
    error: str | None = None

    @property
    def whole(self) -> bool:
        """Whether everything that the provider gave is in the prompt."""
        return self.error is None and all(change.kind not in ("dropped", "cut") for change in self.changes)


@dataclass(frozen=True)
class ContextReport:
    """Where the tokens went.

    Attributes:
        counter: What counted them.
        total: What the whole request costs: sections, tool schemas and the request's own overhead.
        available: The most it might have cost, as counted, or None without a budget.
        max_tokens: The budget's window, or None.
        reserve_output: What of it was left for the reply.
        tools: What the schemas of the tools cost.
        overhead: What the request costs by itself.
        sections: One per provider, in the order of the prompt.
    """

    counter: str
    total: int
    available: int | None
    max_tokens: int | None
    reserve_output: int
    tools: int
    overhead: int
    sections: tuple[SectionReport, ...]

    @property
    def kept_whole(self) -> tuple[str, ...]:
        """Names of the sections that are in the prompt whole."""
        return tuple(section.name for section in self.sections if section.whole)

    @property
    def dropped(self) -> tuple[tuple[str, Change], ...]:
        """Everything dropped or cut, with the name of its section."""
        return tuple(
            (section.name, change)
            for section in self.sections
            for change in section.changes
            if change.kind in ("dropped", "cut")
        )

    def section(self, name: str) -> SectionReport:
        """Return the section of this name.

        Raises:
            KeyError: There is none.
        """
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)

    def __str__(self) -> str:
        limit = "no budget" if self.available is None else f"{self.available:,} available"
        lines = [f"{self.total:,} tokens by {self.counter}, {limit}"]
        for section in self.sections:
            lines.append(f"  {section.name:<12}{section.tokens:>8,}  {section.messages} messages")
            lines += [f"    {c.kind} {c.messages}: {c.reason} ({c.tokens:,} tokens)" for c in section.changes]
            if section.error:
                lines.append(f"    failed: {section.error}")
        lines.append(f"  {'tools':<12}{self.tools:>8,}")
        return "\n".join(lines)
