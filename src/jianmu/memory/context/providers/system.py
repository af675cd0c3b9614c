"""The system prompt."""

from __future__ import annotations

from collections.abc import Callable

from jianmu.memory.context.providers.base import ContextProvider, Provided
from jianmu.memory.context.request import ContextRequest

__all__ = ["SystemPromptProvider"]


class SystemPromptProvider(ContextProvider):
    """The system prompt; it comes first and is never dropped.

    Args:
        prompt: The text, or a function of the request that returns it. What changes from turn to turn (the
            time, say) belongs after the history: give a function among the builder's providers instead.
        name: Names the section.
    """

    def __init__(self, prompt: str | Callable[[ContextRequest], str], *, name: str = "system") -> None:
        super().__init__(name, place="prefix", priority=100, required=True)
        self._prompt = prompt

    def provide(self, request: ContextRequest) -> Provided:
        """Return the prompt."""
        return self._prompt if isinstance(self._prompt, str) else self._prompt(request)
