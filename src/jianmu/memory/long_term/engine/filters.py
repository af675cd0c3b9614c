"""Filters over metadata, as plain data: ``{"year": {"gte": 2020}, "lang": {"in": ["zh", "en"]}}``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jianmu.errors import MemoryInputError

__all__ = ["Filter", "Predicate", "compile_filter"]

Filter = Mapping[str, Any]
"""Field -> value (equal) or field -> {operator: operand}; "and", "or" take lists of filters, "not" one.

Operators: eq, ne, gt, gte, lt, lte, in, exists. A field "a.b" looks into nested mappings unless a field of
that very name exists. Several entries must all hold. A missing field holds for ne and ``exists: False`` only.
"""

Predicate = Callable[[Mapping[str, Any]], bool]

_DEEPEST = 100
_MISSING = object()
_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "gt": lambda value, operand: value > operand,
    "gte": lambda value, operand: value >= operand,
    "lt": lambda value, operand: value < operand,
    "lte": lambda value, operand: value <= operand,
}
_OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "exists")


def compile_filter(spec: Filter | None, depth: int = 0) -> Predicate | None:
    """A predicate over metadata, or None when there is nothing to hold.

    Args:
        spec: The filter.
        depth: How many filters it stands in.

    Raises:
        MemoryInputError: An unknown operator, an operand of the wrong kind, or filters nested too deeply.
    """
    if not spec:
        return None
    if depth > _DEEPEST:
        raise MemoryInputError(f"filters are nested deeper than {_DEEPEST} levels")
    if not isinstance(spec, Mapping):
        raise MemoryInputError(f"filters is a {type(spec).__name__}: give a mapping of fields")
    return _all([_clause(name, operand, depth + 1) for name, operand in spec.items()])


def _clause(name: str, operand: Any, depth: int) -> Predicate:
    if name in ("and", "or"):
        if not isinstance(operand, list | tuple):
            raise MemoryInputError(f"filter {name!r} takes a list of filters")
        parts = [compile_filter(part, depth) or _true for part in operand]
        return _all(parts) if name == "and" else _any(parts)
    if name == "not":
        inner = compile_filter(operand, depth) or _true
        return lambda metadata: not inner(metadata)
    if isinstance(operand, Mapping):
        return _all([_comparison(name, operator, value) for operator, value in operand.items()])
    return _comparison(name, "eq", operand)


def _comparison(field: str, operator: str, operand: Any) -> Predicate:
    if operator not in _OPERATORS:
        raise MemoryInputError(
            f"filter on {field!r}: unknown operator {operator!r}; there are {', '.join(_OPERATORS)}"
        )
    if operator == "in" and not isinstance(operand, list | tuple | set | frozenset):
        raise MemoryInputError(f"filter on {field!r}: 'in' takes a list of values")
    if operator == "exists" and not isinstance(operand, bool):
        raise MemoryInputError(f"filter on {field!r}: 'exists' takes True or False")

    def holds(metadata: Mapping[str, Any]) -> bool:
        return _holds(_look_up(metadata, field), operator, operand)

    return holds


def _holds(value: Any, operator: str, operand: Any) -> bool:
    if operator == "exists":
        return bool((value is not _MISSING) == operand)
    if operator == "ne":
        return value is _MISSING or not _equal(value, operand)
    if value is _MISSING:
        return False
    if operator == "eq":
        return _equal(value, operand)
    if operator == "in":
        return any(_equal(value, choice) for choice in operand)
    if not _comparable(value, operand):
        return False
    return bool(_ORDER[operator](value, operand))


def _equal(value: Any, operand: Any) -> bool:
    """Equal and of the same kind: True is not 1; a list holds its elements."""
    if isinstance(value, list) and not isinstance(operand, list | tuple):
        return any(_equal(element, operand) for element in value)
    if isinstance(operand, tuple):
        operand = list(operand)
    return isinstance(value, bool) == isinstance(operand, bool) and bool(value == operand)


def _comparable(value: Any, operand: Any) -> bool:
    if isinstance(value, bool) or isinstance(operand, bool):
        return False
    both = (value, operand)
    return all(isinstance(one, int | float) for one in both) or all(isinstance(one, str) for one in both)


def _look_up(metadata: Mapping[str, Any], field: str) -> Any:
    if field in metadata:
        return metadata[field]
    value: Any = metadata
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _true(_: Mapping[str, Any]) -> bool:
    return True


def _all(parts: list[Predicate]) -> Predicate:
    return lambda metadata: all(part(metadata) for part in parts)


def _any(parts: list[Predicate]) -> Predicate:
    return lambda metadata: any(part(metadata) for part in parts)
