"""Tools made from functions: the schema from the type hints, the words from the docstring."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self, cast, get_args, get_origin, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from jianmu.errors import ConfigError, ToolArgumentError, ToolError
from jianmu.tools.base import DEFAULT_MAX_OUTPUT, Tool
from jianmu.tools.docstring import described
from jianmu.tools.injected import Injected
from jianmu.tools.result import ToolResult, as_result, output_text
from jianmu.tools.threads import on_thread

__all__ = ["FunctionTool", "tool"]


class FunctionTool(Tool):
    """A function as a tool; calling it calls the function.

    Args:
        function: Sync or async; each parameter needs a type hint (text when it has none).
        name: Instead of the function's.
        description: Instead of the docstring's text before its sections.
        timeout: As in `Tool`.
        max_output: As in `Tool`.
        requires_approval: As in `Tool`.
        read_only: As in `Tool`.

    Raises:
        ConfigError: A parameter that no model could give, or hints that cannot be read.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        max_output: int | None = DEFAULT_MAX_OUTPUT,
        requires_approval: bool = False,
        read_only: bool = False,
    ) -> None:
        text, parameters = described(function.__doc__)
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.description = description if description is not None else text
        self.timeout = timeout
        self.max_output = max_output
        self.requires_approval = requires_approval
        self.read_only = read_only
        self._injected, hints = _split(function, self.name)
        self._bound: dict[str, Any] = {}
        self._names, self._model = _model(function, hints, parameters)
        self.input_schema = _schema(self._model)
        self.__doc__ = function.__doc__

    def bind(self, **values: Any) -> Self:
        """Return a copy that gives these values to the parameters marked `Injected`."""
        for name in values:
            if name not in self._injected:
                raise ConfigError(f"{self.name} has no injected parameter {name!r}")
        return self.with_changes(_bound={**self._bound, **values})

    @property
    def injected(self) -> tuple[str, ...]:
        """The names of the parameters marked `Injected`."""
        return tuple(self._injected)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    def validate(self, arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
        """Return a model's arguments as the function's types; defaults are left to the function."""
        plain = super().validate(arguments)
        try:
            model = self._model.model_validate(plain)
        except ValidationError as error:
            wrongs = [
                f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors(include_url=False)
            ]
            raise ToolArgumentError("; ".join(wrongs)) from None
        return {self._names[field]: getattr(model, field) for field in model.model_fields_set}

    def run(self, **arguments: Any) -> str:
        """Call the function; an async one only where no event loop runs."""
        if not self.is_async:
            return output_text(self.function(**self._with_injected(arguments)))
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.arun(**arguments))
        raise ToolError(f"{self.name} is async: await tool.arun(...) or tool.acall(...) inside an event loop")

    async def arun(self, **arguments: Any) -> str:
        """Await an async function; run a sync one on a thread."""
        if self.is_async:
            return output_text(await self.function(**self._with_injected(arguments)))
        return await super().arun(**arguments)

    def execute(self, **arguments: Any) -> ToolResult:
        """Call the function; it may return a `ToolResult` of its own."""
        if self.is_async:
            return super().execute(**arguments)
        return as_result(self.function(**self._with_injected(arguments)))

    async def aexecute(self, **arguments: Any) -> ToolResult:
        """Do as `execute` does, without blocking the event loop."""
        if self.is_async:
            return as_result(await self.function(**self._with_injected(arguments)))
        return await on_thread(functools.partial(self.execute, **arguments), self.name)

    def __get__(self, instance: Any, owner: type | None = None) -> FunctionTool:
        """Let a method be a tool: of an instance it is one that knows its `self`."""
        return self if instance is None else self.with_changes(_bound={**self._bound, "self": instance})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        if "self" in self._bound:
            return self.function(self._bound["self"], *args, **kwargs)
        return self.function(*args, **kwargs)

    def _with_injected(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if missing := [
            n for n, needed in self._injected.items() if needed and n not in {**self._bound, **arguments}
        ]:
            raise ConfigError(
                f"{self.name} was not given {', '.join(missing)}: use tool.bind({missing[0]}=...)"
            )
        return {**arguments, **self._bound}


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    max_output: int | None = DEFAULT_MAX_OUTPUT,
    requires_approval: bool = False,
    read_only: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Turn a function into a tool: ``@tool`` or ``@tool(timeout=5)``; options as in `FunctionTool`."""
    if function is not None:
        return FunctionTool(function, **options)
    return lambda decorated: FunctionTool(decorated, **options)


def _split(function: Callable[..., Any], name: str) -> tuple[dict[str, bool], dict[str, Any]]:
    """Return the injected parameters (whether each needs a value) and the hints of the others."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(
            f"a type hint of tool {name} cannot be read: {error}; import it at module level"
        ) from error
    injected: dict[str, bool] = {}
    seen: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"tool {name}: a model cannot give {parameter}; name each parameter")
        hint = hints.get(parameter.name, str)
        if _is_injected(hint) or (parameter.name == "self" and "self" not in hints and not seen):
            injected[parameter.name] = parameter.default is parameter.empty
        else:
            seen[parameter.name] = hint
    return injected, seen


def _is_injected(hint: Any) -> bool:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any(mark is Injected or isinstance(mark, Injected) for mark in marks)


def _model(
    function: Callable[..., Any], hints: dict[str, Any], descriptions: dict[str, str]
) -> tuple[dict[str, str], type[BaseModel]]:
    """Return a pydantic model of the parameters, its fields numbered so that no name clashes with its own."""
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for number, (name, hint) in enumerate(hints.items()):
        names[f"p{number}"] = name
        default = inspect.signature(function).parameters[name].default
        about: dict[str, Any] = {"alias": name, "description": descriptions.get(name)}
        if default is inspect.Parameter.empty:
            fields[f"p{number}"] = (hint, Field(**about))
        elif _is_plain(default):
            fields[f"p{number}"] = (hint, Field(default, **about))
        else:
            fields[f"p{number}"] = (hint, Field(default_factory=functools.partial(_same, default), **about))
    config = ConfigDict(arbitrary_types_allowed=True, coerce_numbers_to_str=True, protected_namespaces=())
    return names, cast(type[BaseModel], create_model("Arguments", __config__=config, **fields))


def _same(value: Any) -> Any:
    return value


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    return cast(dict[str, Any], _without_titles({"properties": {}, **schema}))


def _without_titles(schema: Any, *, of_names: bool = False) -> Any:
    """Drop the titles that pydantic writes everywhere; a property that is called title stays."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value, of_names=key in ("properties", "$defs") and not of_names)
        for key, value in schema.items()
        if of_names or key != "title" or not isinstance(value, str)
    }
