"""A chat model that says what a test wrote down."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass

from jianmu.agents.chat_model import Completion, Delta, TextDelta, ToolCallDelta, Usage, completion_of
from jianmu.messages import Message, ToolCall
from jianmu.tools import Tool

__all__ = ["Reply", "ScriptedChatModel", "ScriptedRequest"]

Reply = str | ToolCall | Sequence[ToolCall] | Message | Exception
"""One answer: text, one or more tool calls, a whole message, or an error to raise."""


@dataclass(frozen=True)
class ScriptedRequest:
    """One request that the model got.

    Attributes:
        messages: What was sent.
        tool_names: The tools that were offered.
        idempotency_key: The key that came with it.
        stable: How many messages at the beginning were said to stay.
    """

    messages: tuple[Message, ...]
    tool_names: tuple[str, ...]
    idempotency_key: str | None
    stable: int = 0


class ScriptedChatModel:
    """Answers from a script, or by a rule; keeps every request in `requests`.

    A list is used up in order, which a new process starts anew: a test that kills and resumes gives a rule,
    a function of the request alone.

    Args:
        script: The answers in order, or a function from the request to the answer.
        name: The model's name.
        piece: Characters in one streamed text delta.

    Example::

        ask = ToolCall(id="1", name="memory_search", arguments={"query": "tea"})
        model = ScriptedChatModel([ask, "You like green tea."])
    """

    def __init__(
        self,
        script: Iterable[Reply] | Callable[[ScriptedRequest], Reply],
        *,
        name: str = "scripted",
        piece: int = 8,
    ) -> None:
        self.requests: list[ScriptedRequest] = []
        self._name = name
        self._piece = piece
        self._rule = script if callable(script) else None
        self._left: deque[Reply] = deque() if callable(script) else deque(script)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> AsyncGenerator[Delta | Completion, None]:
        """Yield the next answer in pieces and, last, whole.

        Raises:
            AssertionError: The script is used up.
        """
        request = ScriptedRequest(
            tuple(messages), tuple(tool.name for tool in tools), idempotency_key, stable
        )
        self.requests.append(request)
        message = self._message(self._next(request))
        for at in range(0, len(message.text), self._piece):
            yield TextDelta(message.text[at : at + self._piece])
        for index, call in enumerate(message.tool_calls):
            yield ToolCallDelta(index, call.id, call.name)
        usage = Usage(
            input_tokens=sum(len(sent.text) for sent in request.messages), output_tokens=len(message.text)
        )
        yield Completion(
            message=message,
            usage=usage,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            model=self._name,
        )

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> Completion:
        """Return the next answer."""
        return await completion_of(
            self.stream(messages, tools=tools, idempotency_key=idempotency_key, stable=stable)
        )

    def _next(self, request: ScriptedRequest) -> Reply:
        if self._rule is not None:
            return self._rule(request)
        if not self._left:
            raise AssertionError(f"the script is used up at request {len(self.requests)}")
        return self._left.popleft()

    @staticmethod
    def _message(reply: Reply) -> Message:
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Message):
            return reply
        if isinstance(reply, str):
            return Message(role="assistant", content=reply)
        calls = (reply,) if isinstance(reply, ToolCall) else tuple(reply)
        return Message(role="assistant", tool_calls=calls)
