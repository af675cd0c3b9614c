"""A model's arguments, as it sent them, turned into what a tool's JSON schema declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jianmu.errors import ToolArgumentError
from jianmu.tools.coercion import Coercion, WrongValueError, kind_of

__all__ = ["coerce_arguments", "parse_arguments"]


def parse_arguments(arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return arguments as a dict; a string is JSON text, and an empty one (or None) means no arguments.

    Raises:
        ToolArgumentError: The text is no JSON, or not an object.
    """
    value: object = arguments
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ToolArgumentError(f"the arguments are not valid JSON: {error}") from error
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise ToolArgumentError(f"the arguments must be a JSON object, not {kind_of(value)}")
    return {str(name): item for name, item in value.items()}


def coerce_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `arguments` as `schema` (an object's) declares them.

    A null for an argument that is not required means that it was not given, and it stays out.

    Raises:
        ToolArgumentError: The message names each wrong, missing or unknown argument.
    """
    coercion = Coercion(schema)
    try:
        if unknown := [name for name in arguments if name not in schema.get("properties", {})]:
            known = ", ".join(schema.get("properties", {})) or "none"
            raise WrongValueError(f"{', '.join(unknown)}: no such argument (there are: {known})")
        given = {name: value for name, value in arguments.items() if coercion.is_given(name, value, schema)}
        coerced: dict[str, Any] = coercion.to(given, schema)
    except WrongValueError as wrong:
        raise ToolArgumentError(str(wrong)) from None
    except RecursionError:
        raise ToolArgumentError("the arguments are nested too deeply") from None
    return coerced
