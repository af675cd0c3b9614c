"""A rule in a model's place: it stores what is stated, searches what is asked, word for word."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence

from jianmu.agents.chat_model import Completion, Delta, TextDelta, ToolCallDelta, completion_of
from jianmu.memory.context.marks import is_generated
from jianmu.messages import Message, ToolCall
from jianmu.tools import Tool

__all__ = ["EchoChatModel", "is_question"]

_QUESTION_MARKS = ("?", "？", "吗", "呢")
_ASKING = (
    "what ",
    "who ",
    "when ",
    "where ",
    "which ",
    "how ",
    "do you ",
    "search ",
    "什么",
    "谁",
    "哪",
    "怎么",
    "多少",
)


class EchoChatModel:
    """Tries the whole path of an agent with no key and no network.

    A question (a question mark, or a first word that asks) becomes ``memory_search`` with the question as
    the query; anything else becomes ``memory_add`` with the text as it is. The answer is the tool's result.
    """

    name = "echo"

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> AsyncGenerator[Delta | Completion, None]:
        """Yield the answer in words and, last, whole."""
        message = self._answer(messages, {tool.name for tool in tools})
        for piece in message.text.splitlines(keepends=True):
            yield TextDelta(piece)
        for index, call in enumerate(message.tool_calls):
            yield ToolCallDelta(index, call.id, call.name)
        finish = "tool_calls" if message.tool_calls else "stop"
        yield Completion(message=message, finish_reason=finish, model=self.name)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        idempotency_key: str | None = None,
        stable: int = 0,
    ) -> Completion:
        """Return the whole answer."""
        return await completion_of(
            self.stream(messages, tools=tools, idempotency_key=idempotency_key, stable=stable)
        )

    def _answer(self, messages: Sequence[Message], tools: set[str]) -> Message:
        last = _last_of_the_talk(messages)
        if last is None or (last.role == "user" and not last.text.strip()):
            return Message(role="assistant", content="Tell me something, or ask me about it.")
        if last.role == "tool":
            return Message(role="assistant", content=last.text)
        if is_question(last.text) and "memory_search" in tools:
            return self._call("memory_search", {"query": last.text}, messages)
        if "memory_add" in tools:
            return self._call("memory_add", {"content": last.text}, messages)
        return Message(role="assistant", content=last.text)

    @staticmethod
    def _call(name: str, arguments: dict[str, str], messages: Sequence[Message]) -> Message:
        text = f"{len(messages)}{name}{arguments}"
        call_id = "echo_" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        return Message(role="assistant", tool_calls=(ToolCall(id=call_id, name=name, arguments=arguments),))


def _last_of_the_talk(messages: Sequence[Message]) -> Message | None:
    # A context builder may put what it recalled behind the user's message.
    said = (message for message in reversed(messages) if not is_generated(message))
    return next((message for message in said if message.role in ("user", "tool")), None)


def is_question(text: str) -> bool:
    """Whether `text` looks like a question, in English or Chinese."""
    text = text.strip().lower()
    return text.endswith(_QUESTION_MARKS) or text.startswith(_ASKING)
