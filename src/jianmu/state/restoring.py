"""From a stored dump back to the values of a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from jianmu.codec import Codec
from jianmu.codec.sameness import same, settle
from jianmu.errors import DecodeError, EncodeError, StateValidationError
from jianmu.state.migration import VERSION_KEY, Migration, migrate, stored_version
from jianmu.state.validation import Validation, fields_of

__all__ = ["Restored", "restore"]

S = TypeVar("S", bound=BaseModel)

Restored = tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]
"""The fields; the plain data of those that are exactly what was stored; the schema's private attributes."""


def restore(
    dump: Mapping[str, Any],
    validation: Validation[S],
    codec: Codec,
    version: int,
    migrations: Mapping[int, Migration],
) -> Restored:
    """Read a dump.

    Raises:
        StateVersionError: It is of a newer version, or no migration leads from its version.
        StateValidationError: A value cannot be rebuilt, or the schema refuses it; the message has the path.
    """
    stored = stored_version(dump, version)
    plain = {name: value for name, value in dump.items() if name != VERSION_KEY}
    try:
        if stored != version:
            loose = {name: codec.decode_loosely(value, (name,)) for name, value in plain.items()}
            moved = migrate(loose, stored, version, migrations)
            plain = {name: codec.encode(value, (name,)) for name, value in moved.items()}
        data = {name: codec.decode(value, (name,)) for name, value in plain.items()}
    except (DecodeError, EncodeError) as error:
        raise StateValidationError(f"the stored state cannot be restored: {error}") from error
    rules = validation.rules
    gone = [name for name in data if name not in rules.fields or rules.fields[name].ephemeral]
    if gone and not rules.open:
        raise StateValidationError(
            f"the stored state cannot be restored: {validation.schema.__qualname__} does not keep "
            f"{', '.join(map(str, gone))} any more; count up the version and add a migration"
        )
    model = validation.stored(data)
    fields = settle(data, fields_of(model), lambda held: fields_of(validation.stored(held)))
    exact = {name: plain[name] for name, value in fields.items() if name in data and same(value, data[name])}
    return fields, exact, model.__pydantic_private__
