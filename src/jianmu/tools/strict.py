"""A JSON schema in the form that OpenAI's strict mode takes: every property required, nothing additional.

What may be left out becomes nullable (a null then means "not given"); an object with free keys, which strict
mode does not know, becomes a string of JSON text, which the arguments' coercion reads back.
Source: the rules of "Structured Outputs" in OpenAI's API documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["strict_schema"]

_KEPT = (
    "$ref",
    "type",
    "description",
    "enum",
    "const",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
)

_TELLING = ("$ref", "type", "enum", "const", "anyOf", "oneOf", "allOf")


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strict form of an object schema."""
    strict = _strict({**schema, "type": "object", "additionalProperties": False})
    if "$defs" in schema:
        strict["$defs"] = {name: _strict(definition) for name, definition in schema["$defs"].items()}
    return strict


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or schema.keys().isdisjoint(_TELLING):
        return _json_text(schema)
    declared = schema.get("type")
    if isinstance(declared, list) and not {"object", "array"}.isdisjoint(declared):
        told = {"description": schema["description"]} if "description" in schema else {}
        plain = {key: value for key, value in schema.items() if key != "description"}
        return {**told, "anyOf": [_strict({**plain, "type": one}) for one in declared]}
    has_free_keys = not schema.get("properties") and schema.get("additionalProperties") is not False
    if declared == "object" and has_free_keys:
        return _json_text(schema)
    strict = {key: schema[key] for key in _KEPT if key in schema}
    if "$ref" in strict:
        return {"$ref": strict["$ref"]}
    for choices in ("anyOf", "oneOf", "allOf"):
        if choices in schema:
            strict["anyOf"] = [_strict(choice) for choice in schema[choices]]
    if declared == "array":
        strict["items"] = _strict(schema.get("items"))
    if declared == "object":
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        strict["properties"] = {
            name: _strict(item) if name in required else _nullable(_strict(item))
            for name, item in properties.items()
        }
        strict["required"] = list(properties)
        strict["additionalProperties"] = False
    return strict


def _json_text(schema: Any) -> dict[str, Any]:
    told = schema.get("description", "") if isinstance(schema, Mapping) else ""
    return {"type": "string", "description": f"{told} (JSON text)".strip()}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    declared = schema.get("type")
    if "enum" in schema and None not in schema["enum"]:
        schema = {**schema, "enum": [*schema["enum"], None]}
    if isinstance(declared, str):
        return schema if declared == "null" else {**schema, "type": [declared, "null"]}
    if isinstance(declared, list):
        return schema if "null" in declared else {**schema, "type": [*declared, "null"]}
    choices = schema.get("anyOf")
    if choices is not None:
        return schema if {"type": "null"} in choices else {**schema, "anyOf": [*choices, {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}
