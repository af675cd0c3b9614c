"""The typed state of a run: validated, versioned, and saved exactly."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from jianmu.codec import Codec
from jianmu.codec.decode import describe
from jianmu.codec.dump import StateDump
from jianmu.codec.refusal import Refusal
from jianmu.errors import ConfigError, DecodeError, EncodeError, StateError, StateValidationError
from jianmu.state.migration import VERSION_KEY, Migration, check_migrations, migrate, stored_version
from jianmu.state.lending import lend
from jianmu.state.ownership import Owner
from jianmu.state.schema import read_schema
from jianmu.state.slots import ListSlot, ValueSlot

__all__ = ["StateManager"]

S = TypeVar("S", bound=BaseModel)
Slot = ValueSlot | ListSlot
Listener = Callable[[frozenset[str]], object]

logger = logging.getLogger(__name__)


class StateManager(Generic[S]):
    """Holds the state of one run under a schema. Safe to use from several threads.

    What comes in is copied, validated and then belongs to the state; what is read cannot change it. A field
    annotated ``Annotated[T, reducer]`` is merged by ``reducer(old, new)``; any other is replaced.

    Args:
        schema: A pydantic model class.
        version: The version of the schema, written into each dump; count it up when old dumps need a
            migration.
        migrations: ``{from version: function}``; each takes the fields of a dump of that version as a dict
            and returns those of the next version. Builtin values are decoded; models, dataclasses and named
            tuples are `Stored` dicts and enum members `StoredEnum`, as their classes may be gone.

    Raises:
        ConfigError: The schema, the version or a migration cannot be used.
    """

    def __init__(
        self, schema: type[S], version: int = 1, migrations: Mapping[int, Migration] | None = None
    ) -> None:
        self._rules = read_schema(schema)
        self._migrations = check_migrations(version, migrations)
        self._schema = schema
        self._version = version
        self._codec = Codec(schema)
        self._owner = Owner(check=True)
        self._restorer = Owner(check=False)  # what was just decoded is valid
        self._lock = threading.RLock()
        self._slots: dict[str, Slot] = {}
        self._held: S | None = None  # fields_set and private attributes come from here
        self._updates = 0
        self._listeners: list[Listener] = []

    @property
    def schema(self) -> type[S]:
        """The schema."""
        return self._schema

    @property
    def version(self) -> int:
        """The version of the schema."""
        return self._version

    def initialize(self, data: Mapping[str, Any] | S | None = None) -> None:
        """Start the state anew.

        Args:
            data: Input fields by name or alias, an instance of the schema, None for the defaults, or what
                `dump_checkpoint` returned (perhaps by way of JSON), which migrations bring up to date;
                ephemeral fields then start from their defaults.

        Raises:
            StateValidationError: The schema refuses the data; the state stays as it was.
            StateVersionError: The dump is of a newer version, or no migration leads from its version.
        """
        if isinstance(data, BaseModel):
            state = self._from_instance(data)
        elif data is not None and VERSION_KEY in data:
            state = self._from_dump(data)
        else:
            state = self._from_input({} if data is None else data)
        slots = {name: self._slot(name, value) for name, value in _fields_of(state).items()}
        with self._lock:
            self._slots, self._held, self._updates = slots, state, 0

    def _from_input(self, data: Mapping[str, Any]) -> S:
        if not isinstance(data, Mapping):
            raise StateValidationError(
                f"the input of a state is a dict of its fields, not a {type(data).__name__}"
            )
        known = self._rules.input_names
        if known is not None and not data.keys() <= known:
            raise StateValidationError(self._unknown(sorted(map(str, data.keys() - known))))
        return self._validate(dict(data), by_alias=True)

    def _from_instance(self, data: BaseModel) -> S:
        if type(data) is not self._schema:
            raise StateValidationError(f"a {type(data).__qualname__} is no {self._schema.__qualname__}")
        return self._validate(_fields_of(data), by_alias=False)

    def _from_dump(self, dump: Mapping[str, Any]) -> S:
        version = stored_version(dump, self._version)
        plain = {name: value for name, value in dump.items() if name != VERSION_KEY}
        try:
            if version != self._version:
                loose = {name: self._codec.decode_loosely(value, (name,)) for name, value in plain.items()}
                moved = migrate(loose, version, self._version, self._migrations)
                plain = {name: self._codec.encode(value, (name,)) for name, value in moved.items()}
            data = {name: self._codec.decode(value, (name,)) for name, value in plain.items()}
        except (DecodeError, EncodeError) as error:
            raise StateValidationError(f"stored state, {error}") from error
        gone = [name for name in data if name not in self._rules.fields]
        if gone and not self._rules.open:
            raise StateValidationError(
                f"stored state: {self._schema.__qualname__} has no field {', '.join(gone)} any more; "
                "count up the version and add a migration that drops or renames it"
            )
        return self._validate(data, by_alias=False)

    def _validate(self, data: dict[str, Any], *, by_alias: bool) -> S:
        try:
            return self._schema.model_validate(data, by_alias=by_alias, by_name=True)
        except ValidationError as error:
            raise StateValidationError(f"{self._schema.__qualname__}: {describe(error)}") from error

    def _unknown(self, names: list[str]) -> str:
        return (
            f"{self._schema.__qualname__} has no field {', '.join(names)}; "
            f"its fields are {', '.join(self._rules.fields)}"
        )

    def _slot(self, name: str, value: Any) -> Slot:
        """Take a validated value into a slot of the right kind."""
        rule = self._rules.fields.get(name)
        if rule is not None and rule.ephemeral:
            return ValueSlot(value, True)
        own, fixed = self._take(name, value)
        if rule is not None and rule.grows and type(own) is list:
            return ListSlot(own, all(self._owner.take(item)[1] for item in own))
        return ValueSlot(own, fixed)

    def _take(self, name: str, value: Any) -> tuple[Any, bool]:
        try:
            return self._owner.take(value)
        except Refusal as refusal:
            reason, path = refusal.trace((name,))
            raise StateValidationError(f"{'.'.join(map(str, path))}: {reason}") from None

    def get(self) -> S:
        """Return the committed state.

        The model is the reader's own. A list with an `operator.add` reducer is read-only and shared; every
        other value that can change is a copy. An earlier read never changes by a later update.

        Raises:
            StateError: The state was not initialized.
        """
        with self._lock:
            held = self._started()
            state = self._schema.__new__(self._schema)
            fields = {name: slot.read() for name, slot in self._slots.items()}
            extra = held.__pydantic_extra__
            if extra is not None:
                extra = {name: fields.pop(name) for name in list(fields) if name not in self._rules.fields}
            private = held.__pydantic_private__
        object.__setattr__(state, "__dict__", fields)
        object.__setattr__(state, "__pydantic_extra__", extra)
        object.__setattr__(state, "__pydantic_fields_set__", set(held.__pydantic_fields_set__))
        object.__setattr__(state, "__pydantic_private__", None if private is None else dict(private))
        return state

    def _started(self) -> S:
        if self._held is None:
            raise StateError("the state was not initialized; call initialize() first")
        return self._held

    def update(self, changes: Mapping[str, Any]) -> None:
        """Merge `changes` into the state: all of them, or none.

        A field with a reducer becomes ``reducer(old, new)``, any other is replaced; the result is validated
        as the schema says. With `operator.add` on a list only what is added is validated, unless the field
        itself has a validator or a constraint. Validators over the whole model see all changes at once.

        Args:
            changes: New values by field name.

        Raises:
            StateValidationError: A name is no field, or a value is refused; the state stays as it was.
            StateError: The state was not initialized.
        """
        if not isinstance(changes, Mapping):
            raise StateValidationError(f"an update is a dict of fields, not a {type(changes).__name__}")
        with self._lock:
            held = self._started()
            unknown = [str(name) for name in changes if name not in self._rules.fields]
            if unknown and not self._rules.open:
                raise StateValidationError(self._unknown(unknown))
            if not changes:
                return
            changed = self._update_whole(changes) if self._rules.whole else self._update_fields(changes)
            held.__pydantic_fields_set__.update(changes)
            self._updates += 1
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(changed)
            except Exception:
                logger.exception("a subscriber of the state failed; the update stands")

    def _update_fields(self, changes: Mapping[str, Any]) -> frozenset[str]:
        """Validate field by field against a scratch copy; nothing is committed before all have passed."""
        scratch = self._scratch()
        grown: list[tuple[ListSlot, list[Any], bool]] = []
        replaced: dict[str, Slot] = {}
        for name in sorted(changes, key=self._order):
            new, rule, slot = changes[name], self._rules.fields.get(name), self._slots.get(name)
            if rule is not None and rule.grows and isinstance(slot, ListSlot):
                items, fixed = self._take_items(name, self._assign(scratch, name, new), len(slot.value))
                grown.append((slot, items, fixed))
                continue
            if rule is not None and rule.reducer is not None and slot is not None:
                new = self._reduce(name, slot, new)
            replaced[name] = self._slot(name, self._assign(scratch, name, new))
        for slot, items, fixed in grown:
            slot.extend(items, fixed)
        self._slots.update(replaced)
        return frozenset(changes)

    def _update_whole(self, changes: Mapping[str, Any]) -> frozenset[str]:
        data = {name: slot.read() for name, slot in self._slots.items()}
        for name, new in changes.items():
            rule, slot = self._rules.fields.get(name), self._slots.get(name)
            reduces = rule is not None and rule.reducer is not None and slot is not None
            data[name] = self._reduce(name, slot, new) if reduces and slot is not None else new
        state = self._validate(data, by_alias=False)
        replaced = {
            name: self._slot(name, value)
            for name, value in _fields_of(state).items()
            if name in changes or not _unchanged(self._slots.get(name), value)
        }
        self._slots.update(replaced)
        self._held = state
        return frozenset(replaced)

    def _order(self, name: str) -> int:
        names = list(self._rules.fields)
        return names.index(name) if name in self._rules.fields else len(names)

    def _scratch(self) -> S:
        """A model of the committed values that pydantic may assign to."""
        scratch = self._schema.__new__(self._schema)
        fields = {name: slot.value for name, slot in self._slots.items()}
        extra = {name: fields.pop(name) for name in list(fields) if name not in self._rules.fields}
        object.__setattr__(scratch, "__dict__", fields)
        object.__setattr__(scratch, "__pydantic_extra__", extra if self._rules.open else None)
        object.__setattr__(scratch, "__pydantic_fields_set__", set())
        object.__setattr__(scratch, "__pydantic_private__", None)
        return scratch

    def _assign(self, scratch: S, name: str, value: Any) -> Any:
        try:
            self._schema.__pydantic_validator__.validate_assignment(scratch, name, value)
        except ValidationError as error:
            raise StateValidationError(f"{self._schema.__qualname__}: {describe(error)}") from error
        return _fields_of(scratch)[name]

    def _take_items(self, name: str, items: list[Any], start: int) -> tuple[list[Any], bool]:
        own: list[Any] = []
        fixed = True
        for index, item in enumerate(items, start):
            try:
                mine, still = self._owner.take(item)
            except Refusal as refusal:
                reason, path = refusal.trace((name, index))
                raise StateValidationError(f"{'.'.join(map(str, path))}: {reason}") from None
            own.append(mine)
            fixed = fixed and still
        return own, fixed

    def _reduce(self, name: str, slot: Slot, new: Any) -> Any:
        reducer = self._rules.fields[name].reducer
        assert reducer is not None
        try:
            return reducer(lend(slot.value) if isinstance(slot, ValueSlot) else list(slot.value), new)
        except Exception as error:
            raise StateValidationError(
                f"{name}: its reducer could not merge a {type(new).__name__}: {type(error).__name__}: {error}"
            ) from error

    def preview(self, *updates: Mapping[str, Any]) -> S:
        """Return what `get` would return after these updates, which are checked and not committed.

        Raises:
            StateValidationError: One of them would be refused.
            StateError: The state was not initialized.
        """
        with self._lock:
            if not any(updates):
                return self.get()
            other = copy.copy(self)
            other._held = self._started().model_copy()
            touched = {name for changes in updates for name in changes}
            other._slots = {
                name: ListSlot(list(slot.value), slot.fixed)
                if isinstance(slot, ListSlot) and (name in touched or self._rules.whole)
                else slot
                for name, slot in self._slots.items()
            }
            other._listeners = []
        for changes in updates:
            other.update(changes)
        return other.get()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the names of the changed fields after each committed update.

        It runs in the thread that made the update, outside the lock; what it raises is logged.

        Returns:
            A function that ends the subscription; safe to call twice.
        """
        with self._lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def dump_checkpoint(self) -> StateDump:
        """Return the state as plain JSON data that never changes; only what is new since the last is encoded.

        Raises:
            EncodeError: A value cannot be kept; the message names the field.
            StateError: The state was not initialized.
        """
        with self._lock:
            self._started()
            parts: dict[str, Any] = {VERSION_KEY: self._version}
            for name, slot in self._slots.items():
                rule = self._rules.fields.get(name)
                if rule is not None and rule.ephemeral:
                    continue
                parts[name] = self._freeze(name, slot)
            return StateDump(parts)

    def _freeze(self, name: str, slot: Slot) -> Any:
        if isinstance(slot, ValueSlot):
            return slot.freeze(lambda value: self._codec.encode(value, (name,)))
        return slot.freeze(
            lambda items, start: [
                self._codec.encode(item, (name, start + at)) for at, item in enumerate(items)
            ]
        )

    def dump_runtime_metadata(self) -> dict[str, Any]:
        """Return the state's own bookkeeping, plain JSON data: ``{"updates": int}``."""
        with self._lock:
            return {"updates": self._updates}

    def restore_runtime_metadata(self, metadata: Mapping[str, Any] | None) -> None:
        """Take over what `dump_runtime_metadata` returned; keys it does not know are left alone."""
        updates = (metadata or {}).get("updates", 0)
        if type(updates) is not int or updates < 0:
            raise ConfigError(f"the stored number of updates is {updates!r}, which is no count")
        with self._lock:
            self._updates = updates


def _fields_of(state: BaseModel) -> dict[str, Any]:
    known = type(state).model_fields
    fields = {name: state.__dict__[name] for name in known if name in state.__dict__}
    return {**fields, **(state.__pydantic_extra__ or {})}


def _unchanged(slot: Slot | None, value: Any) -> bool:
    return slot is not None and type(slot.value) is type(value) and bool(slot.value == value)
