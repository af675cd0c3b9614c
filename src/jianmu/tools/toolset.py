"""Several tools as one: combined, filtered, renamed, and called by the name a model uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from jianmu.errors import ConfigError
from jianmu.tools.base import Tool
from jianmu.tools.names import legal_name
from jianmu.tools.result import ToolResult

__all__ = ["ToolSet"]

Which = Collection[str] | Callable[[Tool], bool]


class ToolSet:
    """An unchanging, ordered set of tools with different names; each change returns a new set.

    Args:
        tools: Tools or other tool sets.

    Raises:
        ConfigError: Two tools share a name; `prefix` or `rename` one.
    """

    def __init__(self, tools: Iterable[Tool | ToolSet] = ()) -> None:
        flat = [one for item in tools for one in (item if isinstance(item, ToolSet) else [item])]
        self._tools: dict[str, Tool] = {}
        for one in flat:
            if not one.name:
                raise ConfigError(f"{type(one).__name__} has no name")
            if one.name in self._tools:
                raise ConfigError(f"two tools are called {one.name!r}: prefix or rename one of them")
            self._tools[one.name] = one
        self._by_legal_name = {legal_name(name): one for name, one in self._tools.items()}

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools or name in self._by_legal_name

    def __getitem__(self, name: str) -> Tool:
        """Return a tool by its own name or by the legal one that a provider was given."""
        found = self._tools.get(name) or self._by_legal_name.get(name)
        if found is None:
            raise KeyError(f"no tool is called {name!r}; there are: {', '.join(self._tools) or 'none'}")
        return found

    def __add__(self, other: ToolSet | Iterable[Tool]) -> ToolSet:
        return ToolSet([self, *other])

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._tools)})"

    @property
    def names(self) -> list[str]:
        """The tools' own names, in order."""
        return list(self._tools)

    def filter(self, which: Which) -> ToolSet:
        """Return the tools with these names, or for which the function is true."""
        chosen = self._chosen(which)
        return ToolSet(one for one in self if one.name in chosen)

    def prefix(self, prefix: str) -> ToolSet:
        """Return the tools with `prefix` before each name."""
        return ToolSet(one.with_changes(name=prefix + one.name) for one in self)

    def rename(self, names: Mapping[str, str]) -> ToolSet:
        """Return the tools with new names, given by the old ones."""
        self._chosen(names.keys())
        return ToolSet(one.with_changes(name=names.get(one.name, one.name)) for one in self)

    def require_approval(self, which: Which | None = None) -> ToolSet:
        """Return the tools with approval required for these (by names or a function), or for all."""
        chosen = self._chosen(which) if which is not None else set(self._tools)
        return ToolSet(
            one.with_changes(requires_approval=True) if one.name in chosen else one for one in self
        )

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Call a tool as the model asks; a wrong name is a result that lists the right ones."""
        found = self._tools.get(name) or self._by_legal_name.get(name)
        return found.call(arguments) if found else self._unknown(name)

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Do as `call` does, without blocking the event loop."""
        found = self._tools.get(name) or self._by_legal_name.get(name)
        return await found.acall(arguments) if found else self._unknown(name)

    def to_openai(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """Return `tools` for OpenAI's chat completions."""
        return [one.to_openai(strict=strict) for one in self]

    def to_anthropic(self) -> list[dict[str, Any]]:
        """Return `tools` for Anthropic's messages."""
        return [one.to_anthropic() for one in self]

    def to_gemini(self) -> list[dict[str, Any]]:
        """Return `tools` for Gemini: one item with all function declarations."""
        return [{"function_declarations": [one.to_gemini() for one in self]}] if self._tools else []

    def to_mcp(self) -> list[dict[str, Any]]:
        """Return the tools as the Model Context Protocol lists them."""
        return [one.to_mcp() for one in self]

    def _unknown(self, name: str) -> ToolResult:
        known = ", ".join(self._tools) or "none"
        return ToolResult(
            f"Error: there is no tool {name!r}; there are: {known}", is_error=True, error_type="KeyError"
        )

    def _chosen(self, which: Which) -> set[str]:
        if callable(which):
            return {one.name for one in self if which(one)}
        names = {which} if isinstance(which, str) else set(which)
        if unknown := names - self._tools.keys():
            raise ConfigError(
                f"no tool is called {', '.join(sorted(unknown))}; there are: {', '.join(self._tools)}"
            )
        return names
