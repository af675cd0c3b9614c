"""What a provider is: a source of messages, and how much of the budget it may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from jianmu.errors import ConfigError
from jianmu.memory.context.request import ContextRequest
from jianmu.messages import Message

__all__ = ["ContextProvider", "Cut", "Entries", "OnError", "Place", "Provided"]

Place = Literal["prefix", "history", "suffix"]
"""Where in the prompt: the stable beginning, the conversation, or after it."""

Cut = Literal["never", "start", "end", "entries"]
"""How a section is made to fit: whole or not at all, from which end its text is cut, or entry by entry."""

OnError = Literal["raise", "skip"]


@dataclass(frozen=True)
class Entries:
    """Entries that go in whole or not at all, best first.

    Attributes:
        items: The entries.
        render: Turns the entries that fit into one text; called with none, it is not used.
    """

    items: Sequence[object]
    render: Callable[[Sequence[object]], str]


Provided = str | Message | Sequence[Message] | Entries | None
"""What a provider may give; text becomes a system message in the prefix and a user message in the suffix."""


class ContextProvider(ABC):
    """A source of one section.

    Args:
        name: Names the section in the report.
        place: Where the section stands.
        priority: Sections with a higher number are served first when the budget is short.
        cap: The most it may cost: tokens (int), or a share of the budget (float up to 1.0), or None.
        cut: How it is made to fit.
        required: Never dropped or cut; a budget too small for it is a `BudgetError`.
        on_error: Whether a failure ends the build (a `ProviderError`) or is reported and skipped.
        blocking: Whether `provide` waits for a disk or a network.

    Raises:
        ConfigError: The cap is negative, or a share above 1.
    """

    def __init__(
        self,
        name: str,
        *,
        place: Place,
        priority: int = 0,
        cap: int | float | None = None,
        cut: Cut = "never",
        required: bool = False,
        on_error: OnError = "raise",
    ) -> None:
        if cap is not None and (cap < 0 or (isinstance(cap, float) and cap > 1)):
            raise ConfigError(
                f"cap={cap!r} of {name!r} is neither a number of tokens (int) nor a share up to 1.0"
            )
        self.name = name
        self.place: Place = place
        self.priority = priority
        self.cap = cap
        self.cut: Cut = cut
        self.required = required
        self.on_error: OnError = on_error

    @abstractmethod
    def provide(self, request: ContextRequest) -> Provided | Awaitable[Provided]:
        """Return the section's content; an awaitable needs `ContextBuilder.abuild`."""

    def limit(self, available: int) -> int:
        """Return the cap in tokens for a budget of `available`."""
        if self.cap is None:
            return available
        return min(available, int(self.cap * available) if isinstance(self.cap, float) else self.cap)
