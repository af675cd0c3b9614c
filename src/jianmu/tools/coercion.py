"""A value as a JSON schema declares it, where it can be read so without guessing.

Models send numbers as text, objects as JSON text, whole numbers as 3.0. All of that is accepted *where the
declared type says so* and nothing else: a text stays a text where a text is declared, true is never 1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

__all__ = ["Coercion", "WrongValueError", "kind_of"]

Schema = Mapping[str, Any]

_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "at least", lambda value, bound: value >= bound),
    ("maximum", "at most", lambda value, bound: value <= bound),
    ("exclusiveMinimum", "more than", lambda value, bound: value > bound),
    ("exclusiveMaximum", "less than", lambda value, bound: value < bound),
)
_LENGTHS: tuple[tuple[str, str, Callable[[int, int], bool]], ...] = (
    ("minLength", "at least {} characters", lambda size, bound: size >= bound),
    ("maxLength", "at most {} characters", lambda size, bound: size <= bound),
    ("minItems", "at least {} items", lambda size, bound: size >= bound),
    ("maxItems", "at most {} items", lambda size, bound: size <= bound),
)


class WrongValueError(Exception):
    """A value that the schema refuses; the text names where and what belongs there."""


class Coercion:
    """Reads values by one schema; `root` is where its ``$ref`` start."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def to(self, value: Any, schema: Any, path: str = "") -> Any:
        """Return `value` as `schema` declares it.

        Raises:
            WrongValueError: It cannot be read so.
        """
        if not isinstance(schema, Mapping):
            return value
        schema = self._resolve(schema)
        choices = _choices(schema)
        if choices:
            return self._choose(value, choices, path)
        for part in schema.get("allOf", ()):
            value = self.to(value, part, path)
        declared = schema.get("type")
        if declared in _KINDS:
            read = getattr(self, f"_to_{declared}")(value, schema, path)
            if read is _NO:
                raise WrongValueError(f"{path}: must be {_KINDS[declared]}, not {kind_of(value)}")
            value = read
        _check(value, schema, path)
        return value

    def is_given(self, name: str, value: Any, schema: Schema) -> bool:
        """Whether an argument counts as given: null does only where it is required and may be null."""
        if value is not None:
            return True
        return name in schema.get("required", ()) and self._takes_null(schema["properties"][name])

    def _takes_null(self, schema: Any) -> bool:
        try:
            self.to(None, schema)
        except WrongValueError:
            return False
        return True

    def _resolve(self, schema: Schema) -> Schema:
        for _ in range(32):  # a reference to itself leads nowhere
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            target: Any = self._root
            for part in reference.removeprefix("#/").split("/"):
                target = target.get(part, {})
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return {}

    def _choose(self, value: Any, choices: list[Any], path: str) -> Any:
        """Take the first choice of the value's own type that accepts it, else the first it can be read as."""
        own = [choice for choice in choices if self._is_of_type(value, choice)]
        wrongs = []
        for choice in [*own, *(choice for choice in choices if choice not in own)]:
            try:
                return self.to(value, choice, path)
            except WrongValueError as wrong:
                wrongs.append(wrong)
        if len(own) == 1:
            raise wrongs[0]
        names = (self._resolve(choice).get("type") for choice in choices if isinstance(choice, Mapping))
        kinds = dict.fromkeys(_KINDS.get(str(name), "another form") for name in names)
        raise WrongValueError(f"{path}: must be {' or '.join(kinds)}, not {kind_of(value)}")

    def _is_of_type(self, value: Any, schema: Any) -> bool:
        declared = self._resolve(schema).get("type") if isinstance(schema, Mapping) else None
        found = _type_of(value)
        return declared is None or found == declared or (declared == "number" and found == "integer")

    def _to_string(self, value: Any, schema: Schema, path: str) -> Any:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return json.dumps(value)
        return value if isinstance(value, str) else _NO

    def _to_integer(self, value: Any, schema: Schema, path: str) -> Any:
        if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else _NO

    def _to_number(self, value: Any, schema: Schema, path: str) -> Any:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return _NO
            return value if math.isfinite(value) else _NO
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else _NO

    def _to_boolean(self, value: Any, schema: Schema, path: str) -> Any:
        if isinstance(value, str):
            return {"true": True, "false": False}.get(value.strip().lower(), _NO)
        return value if isinstance(value, bool) else _NO

    def _to_null(self, value: Any, schema: Schema, path: str) -> Any:
        return None if value is None else _NO

    def _to_array(self, value: Any, schema: Schema, path: str) -> Any:
        value = _decoded(value, "[")
        if not isinstance(value, (list, tuple)):
            return _NO
        firsts = schema.get("prefixItems", ())
        items = schema.get("items")
        return [
            self.to(item, firsts[index] if index < len(firsts) else items, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]

    def _to_object(self, value: Any, schema: Schema, path: str) -> Any:
        value = _decoded(value, "{")
        if not isinstance(value, Mapping):
            return _NO
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        others = schema.get("additionalProperties", True)
        wrongs = [f"{_join(path, name)}: is missing" for name in required if name not in value]
        read: dict[str, Any] = {}
        for name, item in value.items():
            where = _join(path, str(name))
            declared = properties.get(name, _by_pattern(str(name), schema, others))
            if declared is False:
                wrongs.append(f"{where}: no such property")
            elif item is not None or name in required or self._takes_null(declared):
                try:
                    read[str(name)] = self.to(item, declared, where)
                except WrongValueError as wrong:
                    wrongs.append(str(wrong))
        if wrongs:
            raise WrongValueError("; ".join(wrongs))
        return read


_NO = object()


def kind_of(value: object) -> str:
    """Name a value's kind for a message, never the value itself."""
    name = _type_of(value)
    return _KINDS.get(name, f"a {name}")


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (Mapping, "object"),
        ((list, tuple), "array"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


def _choices(schema: Schema) -> list[Any]:
    declared = schema.get("type")
    if isinstance(declared, list):
        return [{**schema, "type": one} for one in declared]
    return list(schema.get("anyOf") or schema.get("oneOf") or ())


def _decoded(value: Any, opening: str) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(opening):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise WrongValueError(f"the tool's schema has a pattern that cannot be read: {error}") from error


def _by_pattern(name: str, schema: Schema, others: Any) -> Any:
    """Return the schema of a property that is named by a pattern, else `others`."""
    patterns = schema.get("patternProperties", {})
    found = [each for pattern, each in patterns.items() if _matches(pattern, name)]
    return {"allOf": found} if len(found) > 1 else found[0] if found else others


def _check(value: Any, schema: Schema, path: str) -> None:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if allowed is not None and value not in allowed:
        raise WrongValueError(f"{path}: must be one of {json.dumps(allowed, ensure_ascii=False)}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        for keyword, words, holds in _BOUNDS:
            if keyword in schema and not holds(value, schema[keyword]):
                raise WrongValueError(f"{path}: must be {words} {schema[keyword]}")
    if isinstance(value, (str, list)):
        for keyword, words, holds in _LENGTHS:
            if keyword in schema and not holds(len(value), schema[keyword]):
                raise WrongValueError(f"{path}: must have {words.format(schema[keyword])}")
    if isinstance(value, str) and "pattern" in schema and not _matches(schema["pattern"], value):
        raise WrongValueError(f"{path}: must match the pattern {schema['pattern']}")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and "multipleOf" in schema:
        unit = Fraction(str(schema["multipleOf"]))
        if not math.isfinite(value) or Fraction(str(value)) / unit % 1:
            raise WrongValueError(f"{path}: must be a multiple of {schema['multipleOf']}")
    if isinstance(value, list) and schema.get("uniqueItems"):
        texts = [json.dumps(item, sort_keys=True, default=repr) for item in value]
        if len(set(texts)) < len(texts):
            raise WrongValueError(f"{path}: must have no item twice")
