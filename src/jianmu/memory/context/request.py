"""What providers and filters are told of the prompt being built."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from jianmu.errors import ContextError
from jianmu.memory.context.counting import MessageCounter
from jianmu.memory.context.marks import is_generated, kind_of
from jianmu.messages import Message
from jianmu.state import StateManager

__all__ = ["ContextRequest", "field_of", "read_messages", "view_of"]


@dataclass(frozen=True)
class ContextRequest:
    """One call of `ContextBuilder.build`.

    Attributes:
        state: The state as it was when the call began: a model, a mapping, or the messages themselves.
        messages: The history as the state has it, without what providers made.
        tools: What the model may call.
        counter: Counts messages.
        thread_id: The conversation, if the caller named it.
        values: The caller's other keyword arguments.
        updates: What the caller should write to the state; a filter may add to it.
        wait: Waits for an awaitable, or None while building synchronously; see `resolve`.
    """

    state: object
    messages: tuple[Message, ...]
    tools: tuple[object, ...]
    counter: MessageCounter
    thread_id: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    updates: dict[str, Any] = field(default_factory=dict)
    wait: Callable[[Awaitable[Any]], Any] | None = None

    def resolve(self, value: Any) -> Any:
        """Return `value`, waited for if it is awaitable.

        Raises:
            ContextError: It is awaitable and the prompt is built synchronously.
        """
        if not isinstance(value, Awaitable):
            return value
        if self.wait is None:
            if isinstance(value, Coroutine):
                value.close()
            raise ContextError("a provider or filter is asynchronous; use `await builder.abuild(...)`")
        return self.wait(value)

    @property
    def newest_user(self) -> Message | None:
        """The user's newest message, or None."""
        return next(
            (m for m in reversed(self.messages) if m.role == "user" and kind_of(m) != "summary"), None
        )


def view_of(state: object) -> object:
    """Return what a state holds now: a StateManager's value, anything else as it is."""
    return state.get() if isinstance(state, StateManager) else state


def field_of(view: object, name: str) -> object:
    """Return a field of a model or mapping, or None if it has none of that name."""
    return view.get(name) if isinstance(view, Mapping) else getattr(view, name, None)


def read_messages(view: object, name: str) -> tuple[Message, ...]:
    """Return the history in a state's view, without messages that providers made.

    Args:
        name: The field.
        view: A sequence of messages, or a model or mapping with such a sequence in its field `name`. A
            message may be a dict of a Message's fields.

    Raises:
        ContextError: The field holds something else.
    """
    held = view if isinstance(view, Sequence) and not isinstance(view, str) else field_of(view, name)
    if held is None:
        return ()
    if isinstance(held, str) or not isinstance(held, Sequence):
        kind = type(held).__name__
        raise ContextError(f"state field {name!r} is a {kind}; the history must be a sequence of messages")
    if not set(map(type, held)) <= {Message}:
        held = [item if isinstance(item, Message) else _message(item, name) for item in held]
    return tuple([item for item in held if not item.metadata or not is_generated(item)])


def _message(item: object, name: str) -> Message:
    try:
        return Message.model_validate(item)
    except ValidationError as error:
        where = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise ContextError(
            f"state field {name!r} holds a {type(item).__name__} that is no Message: {where}"
        ) from error
