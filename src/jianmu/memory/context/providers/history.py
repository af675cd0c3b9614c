"""The conversation, as the state has it."""

from __future__ import annotations

from jianmu.memory.context.providers.base import ContextProvider, Provided
from jianmu.memory.context.request import ContextRequest, read_messages

__all__ = ["StateHistoryProvider"]


class StateHistoryProvider(ContextProvider):
    """The messages in the state.

    System messages at its head and the user's newest message are never dropped; of the rest the oldest
    turns go first, in blocks. A turn that is cut keeps the user's message that began it, if that fits.

    Args:
        field: The state's field that holds the messages; unused when the state is a sequence of messages.
        cap: The most it may cost: tokens (int), a share (float), or None for all that is left.
        name: Names the section.
    """

    def __init__(
        self, field: str = "messages", *, cap: int | float | None = None, name: str = "history"
    ) -> None:
        super().__init__(name, place="history", priority=50, cap=cap, cut="start")
        self.field = field

    def provide(self, request: ContextRequest) -> Provided:
        """Return the messages."""
        return read_messages(request.state, self.field)
