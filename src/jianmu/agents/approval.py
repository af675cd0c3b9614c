"""Approvals: asked for one exact call, kept with it, and worth nothing for any other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from jianmu.messages import ToolCall
from jianmu.messages.wire import arguments_as_object

__all__ = ["Decision", "PendingApproval", "call_digest"]


class Decision(BaseModel):
    """What a person said about one call.

    Attributes:
        approved: Whether it may run.
        reason: Told to the model when it may not.
    """

    model_config = ConfigDict(frozen=True)

    approved: bool
    reason: str = ""

    @classmethod
    def of(cls, answer: object) -> Decision:
        """Read an answer: a bool, a mapping with `approved` and `reason`, or a Decision.

        Anything else is a refusal: an approval is never guessed.
        """
        if isinstance(answer, Decision):
            return answer
        if isinstance(answer, bool):
            return cls(approved=answer)
        if isinstance(answer, Mapping) and isinstance(answer.get("approved"), bool):
            return cls(approved=answer["approved"], reason=str(answer.get("reason") or ""))
        return cls(approved=False, reason=f"the answer was {type(answer).__name__}, not true or false")


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for a person.

    Attributes:
        id: What to answer to: ``answers={approval.id: True}``.
        tool: The tool's name; "" when a leaf of your own asks, and `arguments` is what it asks.
        arguments: The arguments it would get.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any]


def call_digest(index: int, call: ToolCall) -> str:
    """Return the identity of one exact call: place, id, name and arguments, as SHA-256 in hex."""
    exact = [index, call.id, call.name, arguments_as_object(call)]
    text = json.dumps(exact, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
