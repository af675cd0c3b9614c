"""What a tool is: a name, a description, a schema, and a function over text that never breaks a run."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import logging
from collections.abc import Mapping
from concurrent.futures import wait
from typing import Any, Self

from jianmu.errors import ToolArgumentError, ToolError, ToolTimeoutError
from jianmu.tools.arguments import coerce_arguments, parse_arguments
from jianmu.tools.export import to_anthropic, to_gemini, to_mcp, to_openai
from jianmu.tools.result import ToolResult, as_result, capped
from jianmu.tools.threads import on_thread, start

__all__ = ["DEFAULT_MAX_OUTPUT", "Tool"]

DEFAULT_MAX_OUTPUT = 50_000
_log = logging.getLogger("jianmu.tools")


class Tool:
    """Something a model may call. Subclass it and write `run`, or decorate a function with `@tool`.

    `run` and `arun` are the bare function. `call` and `acall` are what an agent uses: they take the model's
    arguments as they came, validate them, keep the time and size limits, and turn every failure into a result
    that the model can act on.

    Attributes:
        name: How the model calls it; any text, made legal for each provider when exported.
        description: When to use it and what it gives.
        input_schema: JSON schema of the arguments, of type object.
        output_schema: JSON schema of the result.
        timeout: Seconds that one call may take; None = no limit. A synchronous function that takes longer
            is left behind on its thread, for Python cannot stop it.
        max_output: Characters of a result that a model gets to see; None = all.
        requires_approval: A person must agree to each call; agents ask, `call` does not.
        read_only: It changes nothing, so it may be repeated freely.
    """

    name: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = {"type": "object", "properties": {}}
    output_schema: Mapping[str, Any] = {"type": "string"}
    timeout: float | None = None
    max_output: int | None = DEFAULT_MAX_OUTPUT
    requires_approval: bool = False
    read_only: bool = False

    def run(self, **arguments: Any) -> str:
        """Do it; return text for the model.

        Raises:
            ToolError: Whose text the model is to see.
        """
        raise NotImplementedError(f"{type(self).__name__} must define run(**arguments) or arun(**arguments)")

    async def arun(self, **arguments: Any) -> str:
        """Do it without blocking the event loop; by default `run` on a thread."""
        return await on_thread(functools.partial(self.run, **arguments), self.name)

    def execute(self, **arguments: Any) -> ToolResult:
        """Do it and say whether it failed; override it for a failure with a text of its own."""
        return as_result(self.run(**arguments))

    async def aexecute(self, **arguments: Any) -> ToolResult:
        """Do as `execute` does, without blocking the event loop."""
        return as_result(await self.arun(**arguments))

    def validate(self, arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
        """Return a model's arguments (a dict or JSON text) as the schema declares them.

        Raises:
            ToolArgumentError: Naming each wrong, missing or unknown argument.
        """
        return coerce_arguments(parse_arguments(arguments), self.input_schema)

    def call(self, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Validate, run within the limits, and return a result; a failure is a result too."""
        try:
            valid = self.validate(arguments)
            if self.timeout is None:
                return self._capped(self.execute(**valid))
            started = start(functools.partial(self.execute, **valid), self.name)
            if wait([started], self.timeout).not_done:
                raise _too_slow(self)
            return self._capped(started.result())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a failing tool is an answer to the model
            return self._failure(error)

    async def acall(self, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Do as `call` does, without blocking the event loop; cancelling it cancels the tool."""
        try:
            valid = self.validate(arguments)
            async with asyncio.timeout(self.timeout) as limit:
                return self._capped(await self.aexecute(**valid))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._failure(error)  # nobody cancelled this call: the tool raised it
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a failing tool is an answer to the model
            if isinstance(error, TimeoutError) and limit.expired():
                error = _too_slow(self)
            return self._failure(error)

    def with_changes(self, **changes: Any) -> Self:
        """Return a copy with some attributes changed, e.g. ``tool.with_changes(name="find", timeout=5)``."""
        for name in changes:
            if not hasattr(self, name):
                raise AttributeError(f"a tool has no attribute {name!r}")
        changed = copy.copy(self)
        for name, value in changes.items():
            setattr(changed, name, value)
        return changed

    def to_openai(self, *, strict: bool = False) -> dict[str, Any]:
        """Return this tool as an item of `tools` of OpenAI's chat completions."""
        return to_openai(self, strict=strict)

    def to_anthropic(self) -> dict[str, Any]:
        """Return this tool as an item of `tools` of Anthropic's messages."""
        return to_anthropic(self)

    def to_gemini(self) -> dict[str, Any]:
        """Return this tool as a Gemini function declaration."""
        return to_gemini(self)

    def to_mcp(self) -> dict[str, Any]:
        """Return this tool as the Model Context Protocol describes tools."""
        return to_mcp(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def _capped(self, result: ToolResult) -> ToolResult:
        return dataclasses.replace(result, content=capped(result.content, self.max_output))

    def _failure(self, error: BaseException) -> ToolResult:
        name = type(error).__name__
        if isinstance(error, ToolArgumentError):
            text = f"Error: wrong arguments for {self.name}: {_said(error)}"
        elif isinstance(error, ToolError):
            text = f"Error: {_said(error)}"
        else:
            _log.warning("tool %s failed: %s", self.name, name, exc_info=_log.isEnabledFor(logging.DEBUG))
            text = f"Error: {name}: {_said(error)}"
        return ToolResult(capped(text, self.max_output), is_error=True, error_type=name)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot be shown is still one
        return "(no message)"


def _too_slow(tool: Tool) -> ToolTimeoutError:
    return ToolTimeoutError(f"{tool.name} took longer than its limit of {tool.timeout:g} s")
