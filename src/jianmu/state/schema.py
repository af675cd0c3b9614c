"""What a schema says about each field of a state: its reducer, and whether it is kept at all."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic.fields import FieldInfo

from jianmu.errors import ConfigError

__all__ = ["Ephemeral", "FieldRule", "Reducer", "SchemaRules", "read_schema"]

Reducer = Callable[[Any, Any], Any]

if TYPE_CHECKING:
    T = TypeVar("T")
    Ephemeral = Annotated[T, "ephemeral"]
else:

    class Ephemeral:
        """Marks a field that is never saved: ``Annotated[T, Ephemeral]`` or ``Ephemeral[T]``.

        Its value is the very object that was put in, lives until the run ends, and starts from the field's
        default after a restore: for handles that a leaf can make again, and for secrets.
        """

        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item, Ephemeral]


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One field of a schema.

    Attributes:
        name: The field's name.
        reducer: ``(old, new) -> merged``, or None if a new value replaces the old one.
        ephemeral: Whether it is never saved.
        grows: Whether an update is added to the end of a list, so that only what is added need be looked at.
    """

    name: str
    reducer: Reducer | None
    ephemeral: bool
    grows: bool


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """A schema as a state manager needs it.

    Attributes:
        fields: The rule of each field, in the schema's order.
        whole: Whether the schema has validators over the whole model, which each update must then pass.
        open: Whether names beyond the fields are accepted and kept (``extra="allow"``).
        input_names: The names and aliases that `initialize` accepts, or None if anything may be passed.
    """

    fields: dict[str, FieldRule]
    whole: bool
    open: bool
    input_names: frozenset[str] | None

    @property
    def names(self) -> Collection[str]:
        """The names of the fields."""
        return self.fields.keys()


def read_schema(schema: type[BaseModel]) -> SchemaRules:
    """Return the rules of `schema`.

    Raises:
        ConfigError: It is no model with fields, or a field is marked in a way that cannot work.
    """
    candidate: Any = schema  # from untyped code it may be anything
    if (
        not isinstance(candidate, type)
        or not issubclass(candidate, BaseModel)
        or candidate.__pydantic_root_model__
    ):
        raise ConfigError(f"a state schema is a pydantic BaseModel class with fields, not {schema!r}")
    decorators = schema.__pydantic_decorators__
    validated = {name for found in decorators.field_validators.values() for name in found.info.fields}
    fields = {name: _rule(schema, name, info, validated) for name, info in schema.model_fields.items()}
    is_open = schema.model_config.get("extra") == "allow"
    lenient = is_open or ("extra" in schema.model_config and schema.model_config["extra"] == "ignore")
    reshapes = any(found.info.mode != "after" for found in decorators.model_validators.values())
    return SchemaRules(
        fields=fields,
        whole=bool(decorators.model_validators or decorators.root_validators),
        open=is_open,
        input_names=None if lenient or reshapes else frozenset(_input_names(schema)),
    )


def _rule(schema: type[BaseModel], name: str, info: FieldInfo, validated: set[str]) -> FieldRule:
    where = f"{schema.__name__}.{name}"
    ephemeral = any(mark is Ephemeral for mark in info.metadata)
    if ephemeral and info.is_required():
        raise ConfigError(f"{where} is Ephemeral and so needs a default to start from after a restore")
    reducers = [mark for mark in info.metadata if _is_reducer(mark, where)]
    if len(reducers) > 1:
        raise ConfigError(f"{where} has {len(reducers)} reducers; a field has at most one")
    if any(_is_reducer(mark, where) for mark in _inner_marks(info.annotation)):
        raise ConfigError(
            f"the reducer of {where} stands inside the type; write Annotated[the whole type, reducer]"
        )
    reducer = reducers[0] if reducers else None
    constrained = len(info.metadata) > len(reducers) + ephemeral or name in validated or "*" in validated
    grows = reducer in (operator.add, operator.iadd, operator.concat) and not constrained
    return FieldRule(name, reducer, ephemeral, grows)


def _is_reducer(mark: object, where: str) -> bool:
    """Whether a piece of metadata is a reducer: callable, no class, and nothing that pydantic knows."""
    if not callable(mark) or isinstance(mark, type) or hasattr(mark, "__get_pydantic_core_schema__"):
        return False
    try:
        inspect.signature(mark).bind(None, None)
    except TypeError:
        raise ConfigError(f"the reducer of {where} must take (old, new), which {mark!r} does not") from None
    except ValueError:  # a builtin that does not tell its signature
        return True
    return True


def _inner_marks(annotation: Any) -> list[Any]:
    """Return the metadata of the members of a union, where a reducer would be overlooked."""
    marks: list[Any] = []
    for member in get_args(annotation):
        if hasattr(member, "__metadata__"):
            marks.extend(mark for mark in member.__metadata__ if inspect.isroutine(mark))
    return marks


def _input_names(schema: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    for name, info in schema.model_fields.items():
        names.add(name)
        alias = info.validation_alias or info.alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            first = choice.path[0] if isinstance(choice, AliasPath) else choice
            if isinstance(first, str):
                names.add(first)
    return names
