"""One message of a conversation, as state, memory, context and chat models all know it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ImagePart", "Message", "Part", "Role", "TextPart", "ToolCall"]

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(BaseModel):
    """A piece of text inside a message."""

    model_config = ConfigDict(frozen=True)

    type: Literal["text"] = "text"
    text: str


class ImagePart(BaseModel):
    """An image by URL (``https:`` or ``data:``); sizes are in pixels and used to count tokens."""

    model_config = ConfigDict(frozen=True)

    type: Literal["image"] = "image"
    url: str
    width: int | None = None
    height: int | None = None


Part = TextPart | ImagePart


class ToolCall(BaseModel):
    """A call that the model asks for; `arguments` stay as the provider sent them."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class Message(BaseModel):
    """One message; frozen, so that it can be shared and cached by identity.

    A ``tool`` message answers the call named by `tool_call_id`; `is_error` tells the model that the call
    failed. `time` should be aware. `id` is free for the caller and never sent to a provider.
    """

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str | tuple[Part, ...] = ""
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    time: datetime | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None

    @property
    def text(self) -> str:
        """The text of the content; parts are joined by newlines, images left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))
