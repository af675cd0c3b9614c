"""Any function as a provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from jianmu.memory.context.providers.base import ContextProvider, Cut, OnError, Place, Provided
from jianmu.memory.context.request import ContextRequest

__all__ = ["FunctionProvider"]


class FunctionProvider(ContextProvider):
    """A function of the request that returns text, messages, entries or None; it may be a coroutine function.

    Args:
        function: The function.
        name: Names the section; the function's own name by default.
        place: Where the section stands: after the history by default, as what a function says usually
            changes.
        priority: Higher is served first.
        cap: The most it may cost.
        cut: How it is made to fit.
        required: Whether it may never be dropped.
        on_error: Whether a failure ends the build.
    """

    def __init__(
        self,
        function: Callable[[ContextRequest], Provided | Awaitable[Provided]],
        *,
        name: str | None = None,
        place: Place = "suffix",
        priority: int = 10,
        cap: int | float | None = None,
        cut: Cut = "never",
        required: bool = False,
        on_error: OnError = "raise",
    ) -> None:
        named = name or str(getattr(function, "__name__", type(function).__name__))
        super().__init__(
            named, place=place, priority=priority, cap=cap, cut=cut, required=required, on_error=on_error
        )
        self._function = function

    def provide(self, request: ContextRequest) -> Provided | Awaitable[Provided]:
        """Return what the function returns."""
        return self._function(request)
