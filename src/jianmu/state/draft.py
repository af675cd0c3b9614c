"""Updates on top of the committed state: all of them pass and are committed, or none leaves a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from jianmu.codec.sameness import same
from jianmu.errors import StateValidationError
from jianmu.state.lending import lend
from jianmu.state.ownership import Owner
from jianmu.state.slots import ListSlot, Slot, make_slot, take_items
from jianmu.state.validation import Validation, fields_of

__all__ = ["Draft"]

S = TypeVar("S", bound=BaseModel)


class Draft(Generic[S]):
    """The state as some updates would leave it.

    Args:
        slots: The committed fields; untouched before `commit`.
        validation: The schema's.
        owner: Takes the new values.
    """

    def __init__(self, slots: dict[str, Slot], validation: Validation[S], owner: Owner) -> None:
        self._slots = slots
        self._validation = validation
        self._owner = owner
        self._replaced: dict[str, Slot] = {}
        self._grown: dict[str, tuple[list[Any], bool]] = {}

    def apply(self, changes: Mapping[str, Any]) -> None:
        """Put one update on top; after an error the draft is of no more use.

        Raises:
            StateValidationError: A name is no field, or a value is refused.
        """
        rules = self._validation.rules
        if not isinstance(changes, Mapping):
            raise StateValidationError(f"an update is a dict of fields, not a {type(changes).__name__}")
        self._validation.check_names(changes, None if rules.open else rules.names)
        if rules.whole and changes:
            self._apply_whole(changes)
        else:
            self._apply_fields(changes)

    def _apply_fields(self, changes: Mapping[str, Any]) -> None:
        """Validate field by field, in the schema's order: a validator may look at the fields before its."""
        rules = self._validation.rules.fields
        names = [name for name in rules if name in changes] if len(changes) > 1 else []
        scratch = self._validation.model({name: self._slot(name).value for name in self._names()})
        for name in names or changes:
            self._apply_field(scratch, name, changes[name])
        for name in changes.keys() - rules.keys():
            self._apply_field(scratch, name, changes[name])

    def _apply_field(self, scratch: S, name: str, new: Any) -> None:
        rule = self._validation.rules.fields.get(name)
        slot = self._replaced.get(name) or self._slots.get(name)
        if rule is not None and rule.grows and isinstance(slot, ListSlot):
            items, fixed = self._grown.get(name, ([], True))
            added = self._validation.assign(scratch, name, new)
            own, all_fixed = take_items(name, added, self._owner, len(slot.value) + len(items))
            self._grown[name] = [*items, *own], fixed and all_fixed
            return
        if rule is not None and rule.reducer is not None and slot is not None:
            new = self._reduce(name, new)
        self._replace(name, self._validation.assign(scratch, name, new))

    def _replace(self, name: str, value: Any) -> None:
        self._grown.pop(name, None)
        self._replaced[name] = make_slot(name, self._validation.rules.fields.get(name), value, self._owner)

    def _reduce(self, name: str, new: Any) -> Any:
        rule = self._validation.rules.fields[name]
        assert rule.reducer is not None
        old = self._read(name)
        try:
            return rule.reducer(list(old) if rule.grows and isinstance(old, list) else lend(old), new)
        except Exception as error:  # a user's function may raise anything
            raise StateValidationError(
                f"{name}: its reducer could not merge a {type(new).__name__}: {type(error).__name__}: {error}"
            ) from error

    def _apply_whole(self, changes: Mapping[str, Any]) -> None:
        """Validate the whole model, whose validators may change fields that the update does not name."""
        rules = self._validation.rules.fields
        before = {name: self._read(name) for name in self._names()}
        data = dict(before)
        for name, new in changes.items():
            rule = rules.get(name)
            reduces = rule is not None and rule.reducer is not None and name in data
            data[name] = self._reduce(name, new) if reduces else new
        for name, value in fields_of(self._validation.whole(data)).items():
            if name in before and same(before[name], value):
                continue
            if not self._grow(name, value):
                self._replace(name, value)

    def _grow(self, name: str, value: Any) -> bool:
        """Treat a list that goes on where the committed one ends as grown, so that its text goes on too."""
        slot = self._replaced.get(name) or self._slots.get(name)
        if not isinstance(slot, ListSlot) or type(value) is not list or len(value) < len(slot.value):
            return False
        count = len(slot.value)
        if not all(map(same, list.__iter__(slot.value), value)):
            return False
        self._grown[name] = take_items(name, value[count:], self._owner, count)
        return True

    def _names(self) -> dict[str, Slot]:
        return {**self._slots, **self._replaced}

    def _slot(self, name: str) -> Slot:
        return self._replaced[name] if name in self._replaced else self._slots[name]

    def _read(self, name: str) -> Any:
        slot = self._slot(name)
        if isinstance(slot, ListSlot) and name in self._grown:
            return slot.extended(*self._grown[name])
        return slot.read()

    def read(self) -> dict[str, Any]:
        """Return the fields as a reader would get them after `commit`."""
        return {name: self._read(name) for name in self._names()}

    def commit(self) -> frozenset[str]:
        """Make it so and return the names of the fields that are not what they were."""
        changed = [name for name, slot in self._replaced.items() if self._differs(name, slot)]
        self._slots.update({name: self._replaced[name] for name in changed})
        for name, (items, fixed) in self._grown.items():
            slot = self._slots[name]
            if items and isinstance(slot, ListSlot):
                slot.extend(items, fixed)
                changed.append(name)
        return frozenset(changed)

    def _differs(self, name: str, slot: Slot) -> bool:
        old, rule = self._slots.get(name), self._validation.rules.fields.get(name)
        if old is None or name in self._grown or (rule is not None and rule.ephemeral):
            return old is None or old.value is not slot.value
        return not same(old.value, slot.value)
