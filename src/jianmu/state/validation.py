"""What the schema says to values: the whole model at once, or one field of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from jianmu.codec.validating import describe, validate_fields
from jianmu.errors import StateValidationError
from jianmu.state.migration import VERSION_KEY
from jianmu.state.schema import SchemaRules

__all__ = ["Validation", "fields_of"]

S = TypeVar("S", bound=BaseModel)

_OWN_RESULT = (
    "the schema refuses what it made itself, so the state could not be restored; "
    "let validators accept their own results"
)


class Validation(Generic[S]):
    """Validates values against a schema and builds its models.

    Args:
        schema: The schema.
        rules: Its rules.
    """

    def __init__(self, schema: type[S], rules: SchemaRules) -> None:
        self.schema = schema
        self.rules = rules

    def check_names(self, names: Collection[Any], known: Collection[str] | None) -> None:
        """Refuse names that are not `known` (None = anything goes).

        Raises:
            StateValidationError: It lists them and the fields there are.
        """
        unknown = [str(name) for name in names if known is not None and name not in known]
        if VERSION_KEY in names:
            unknown.append(VERSION_KEY)
        if unknown:
            raise StateValidationError(
                f"{self.schema.__qualname__} has no field {', '.join(unknown)}; "
                f"its fields are {', '.join(self.rules.fields)}"
            )

    def input(self, data: Mapping[str, Any]) -> S:
        """Return a new model of input fields by name or alias.

        Raises:
            StateValidationError: The schema refuses it, or would refuse what it made of it.
        """
        validate = self.schema.__pydantic_validator__.validate_python
        return self._restorable(self._checked(lambda: validate(data, by_alias=True, by_name=True)))

    def whole(self, data: Mapping[str, Any]) -> S:
        """Return a new model of fields by name.

        Raises:
            StateValidationError: The schema refuses it, or would refuse what it made of it.
        """
        return self._restorable(self.stored(data))

    def stored(self, data: Mapping[str, Any]) -> S:
        """Return a new model of fields that were stored.

        Raises:
            StateValidationError: The schema refuses it; the message names the fields and never a value.
        """
        return self._checked(lambda: validate_fields(self.schema, data))

    def _restorable(self, model: S) -> S:
        """Refuse now what a restore would refuse: a value that does not pass the validator that made it."""
        try:
            self.stored(fields_of(model))
        except StateValidationError as error:
            raise StateValidationError(f"{error} ({_OWN_RESULT})") from None
        return model

    def _checked(self, make: Callable[[], S]) -> S:
        try:
            model = make()
        except ValidationError as error:
            raise StateValidationError(f"{self.schema.__qualname__}: {describe(error)}") from None
        except Exception as error:  # a user's validator may raise anything
            raise StateValidationError(
                f"a validator of {self.schema.__qualname__} failed: {type(error).__name__}: {error}"
            ) from error
        if type(model) is not self.schema:
            raise StateValidationError(
                f"a validator of {self.schema.__qualname__} returned a {type(model).__qualname__}"
            )
        return model

    def assign(self, scratch: S, name: str, value: Any) -> Any:
        """Return what a field becomes when assigned to `scratch`, whose other fields its validator may read.

        Raises:
            StateValidationError: The field refuses the value, or would refuse what it made of it.
        """
        made = self._assigned(scratch, name, value)
        if made is not value:
            try:
                self._assigned(scratch, name, made)
            except StateValidationError as error:
                raise StateValidationError(f"{error} ({_OWN_RESULT})") from None
            _put(scratch, name, made)
        return made

    def _assigned(self, scratch: S, name: str, value: Any) -> Any:
        try:
            self.schema.__pydantic_validator__.validate_assignment(scratch, name, value)
        except ValidationError as error:
            raise StateValidationError(f"{self.schema.__qualname__}: {describe(error)}") from None
        except Exception as error:  # a user's validator may raise anything
            raise StateValidationError(
                f"{self.schema.__qualname__}: a validator of {name} failed: {type(error).__name__}: {error}"
            ) from error
        return fields_of(scratch)[name]

    def model(self, fields: Mapping[str, Any], private: Mapping[str, Any] | None = None) -> S:
        """Return a model of values that are known to be valid; every field counts as set."""
        held = {name: value for name, value in fields.items() if name in self.rules.fields}
        extra = (
            {name: value for name, value in fields.items() if name not in held} if self.rules.open else None
        )
        model = object.__new__(self.schema)
        set_attribute = object.__setattr__
        set_attribute(model, "__dict__", held)
        set_attribute(model, "__pydantic_extra__", extra)
        set_attribute(model, "__pydantic_fields_set__", set(fields))
        set_attribute(model, "__pydantic_private__", None if private is None else dict(private))
        return model


def _put(model: BaseModel, name: str, value: Any) -> None:
    extra = model.__pydantic_extra__
    (extra if extra is not None and name in extra else model.__dict__)[name] = value


def fields_of(model: BaseModel) -> dict[str, Any]:
    """Return the fields and extra fields of a model by name."""
    names = type(model).__pydantic_fields__
    held = {name: model.__dict__[name] for name in names if name in model.__dict__}
    return {**held, **model.__pydantic_extra__} if model.__pydantic_extra__ else held
