"""Whether a model class accepts its own fields, as a restore will ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from jianmu.codec.sameness import same

__all__ = ["describe", "validate_fields"]

M = TypeVar("M", bound=BaseModel)


def validate_fields(cls: type[M], fields: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> M:
    """Return a new model of fields by name.

    A value that is the field's own default is right by declaration, even where the annotation says otherwise
    (``note: str = None``): pydantic does not validate defaults either.

    Raises:
        ValidationError: The class refuses a field; a validator of the user's may raise anything else.
    """
    validate = cls.__pydantic_validator__.validate_python
    if cls.__pydantic_root_model__:
        root: M = validate(fields["root"])
        return root
    data = {**extra, **fields} if extra else fields
    try:
        model: M = validate(data, by_alias=False, by_name=True)
    except Exception:  # a validator may raise anything; what is left decides
        judged = {name: value for name, value in data.items() if not _is_default(cls, name, value)}
        if len(judged) == len(data):
            raise
        model = validate(judged, by_alias=False, by_name=True)
    return model


def _is_default(cls: type[BaseModel], name: str, value: Any) -> bool:
    field = cls.__pydantic_fields__.get(name)
    return field is not None and not field.validate_default and same(value, field.default)


def describe(error: ValidationError) -> str:
    """Return pydantic's findings as one line, without the values (they may be secret)."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(map(str, item['loc'])) or 'value'}: {item['msg']}" for item in found[:5]]
    if len(found) > 5:
        lines.append(f"and {len(found) - 5} more")
    return "; ".join(lines)
