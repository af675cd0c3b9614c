"""The typed state of a run: validated, versioned, and saved exactly."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from jianmu.codec import Codec
from jianmu.codec.dump import StateDump
from jianmu.errors import ConfigError, StateError, StateValidationError
from jianmu.state.draft import Draft
from jianmu.state.migration import VERSION_KEY, Migration, check_migrations
from jianmu.state.ownership import Owner
from jianmu.state.restoring import Restored, restore
from jianmu.state.schema import read_schema
from jianmu.state.slots import Slot, make_slot
from jianmu.state.validation import Validation, fields_of

__all__ = ["StateManager"]

S = TypeVar("S", bound=BaseModel)
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
            tuples are `Stored` dicts and enum members `StoredEnum`, as their classes may be gone. The result
            is validated.

    Raises:
        ConfigError: The schema, the version or a migration cannot be used.
    """

    def __init__(
        self, schema: type[S], version: int = 1, migrations: Mapping[int, Migration] | None = None
    ) -> None:
        self._validation = Validation(schema, read_schema(schema))
        self._migrations = check_migrations(version, migrations)
        self._version = version
        self._codec = Codec(schema)
        self._owner = Owner()
        self._lock = threading.RLock()
        self._slots: dict[str, Slot] | None = None
        self._private: dict[str, Any] | None = None
        self._updates = 0
        self._listeners: list[Listener] = []

    @property
    def schema(self) -> type[S]:
        """The schema."""
        return self._validation.schema

    @property
    def version(self) -> int:
        """The version of the schema."""
        return self._version

    def initialize(self, data: Mapping[str, Any] | S | None = None) -> None:
        """Start the state anew; subscribers are not told.

        Args:
            data: Input fields by name or alias, an instance of the schema, None for the defaults, or what
                `dump_checkpoint` returned (perhaps by way of JSON), which migrations bring up to date;
                ephemeral fields then start from their defaults.

        Raises:
            StateValidationError: The schema refuses the data; the state stays as it was.
            StateVersionError: The dump is of a newer version, or no migration leads from its version.
        """
        if isinstance(data, Mapping) and VERSION_KEY in data:
            fields, plain, private = restore(
                data, self._validation, self._codec, self._version, self._migrations
            )
        else:
            fields, plain, private = self._from_input(data)
        rules = self._validation.rules.fields
        decoded = Owner(ours=True)
        slots = {
            name: make_slot(name, rules.get(name), value, decoded, plain[name])
            if name in plain
            else make_slot(name, rules.get(name), value, self._owner)
            for name, value in fields.items()
        }
        with self._lock:
            self._slots, self._private, self._updates = slots, private, 0

    def _from_input(self, data: Mapping[str, Any] | S | None) -> Restored:
        if isinstance(data, BaseModel):
            if type(data) is not self.schema:
                raise StateValidationError(f"a {type(data).__qualname__} is no {self.schema.__qualname__}")
            model = self._validation.whole(fields_of(data))
        elif data is None or isinstance(data, Mapping):
            self._validation.check_names(data or {}, self._validation.rules.input_names)
            model = self._validation.input(dict(data or {}))
        else:
            raise StateValidationError(
                f"the input of a state is a dict of fields, not a {type(data).__name__}"
            )
        return fields_of(model), {}, model.__pydantic_private__

    def _started(self) -> dict[str, Slot]:
        if self._slots is None:
            raise StateError("the state was not initialized; call initialize() first")
        return self._slots

    def get(self) -> S:
        """Return the committed state.

        The model is the reader's own. A list with an `operator.add` reducer is read-only and shared; every
        other value that can change is a copy. An earlier read never changes by a later update.

        Raises:
            StateError: The state was not initialized.
        """
        with self._lock:
            fields = {name: slot.read() for name, slot in self._started().items()}
            return self._validation.model(fields, self._private)

    def update(self, changes: Mapping[str, Any], *more: Mapping[str, Any]) -> None:
        """Merge `changes` into the state, then each of `more`: all of them, or none.

        A field with a reducer becomes ``reducer(old, new)``, any other is replaced; the result is validated
        as the schema says. With `operator.add` on a list only what is added is validated, unless the field
        itself has a validator or a constraint. Validators over the whole model see each update as a whole.

        Args:
            changes: New values by field name.
            more: Further updates.

        Raises:
            StateValidationError: A name is no field, or a value is refused; the state stays as it was.
            StateError: The state was not initialized.
        """
        with self._lock:
            changed = self._draft(changes, *more).commit()
            if not changed:
                return
            self._updates += 1
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(changed)
            except Exception:  # a subscriber may raise anything
                logger.exception("a subscriber of the state failed; the update stands")

    def preview(self, *updates: Mapping[str, Any]) -> S:
        """Return what `get` would return after these updates, which are checked and not committed.

        Raises:
            StateValidationError: One of them would be refused.
            StateError: The state was not initialized.
        """
        with self._lock:
            return self._validation.model(self._draft(*updates).read(), self._private)

    def _draft(self, *updates: Mapping[str, Any]) -> Draft[S]:
        draft = Draft(self._started(), self._validation, self._owner)
        for changes in updates:
            draft.apply(changes)
        return draft

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
        rules = self._validation.rules.fields
        with self._lock:
            kept = {
                name: slot
                for name, slot in self._started().items()
                if name not in rules or not rules[name].ephemeral
            }
            parts = {name: slot.freeze(name, self._codec.encode) for name, slot in kept.items()}
        return StateDump({VERSION_KEY: self._version, **parts})

    def dump_runtime_metadata(self) -> dict[str, Any]:
        """Return the state's own bookkeeping, plain JSON data: ``{"updates": int}``."""
        with self._lock:
            return {"updates": self._updates}

    def restore_runtime_metadata(self, metadata: Mapping[str, Any] | None) -> None:
        """Take over what `dump_runtime_metadata` returned; keys it does not know are left alone.

        Raises:
            ConfigError: The number of updates is no count.
        """
        updates = (metadata or {}).get("updates", 0)
        if type(updates) is not int or updates < 0:
            raise ConfigError(f"the stored number of updates is {updates!r}, which is no count")
        with self._lock:
            self._updates = updates
