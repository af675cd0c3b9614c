"""What is put in is the state's own from then on, and what is read cannot change it."""

from __future__ import annotations

import copy
import json
import operator
import pickle
from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from jianmu import Ephemeral, Message, StateManager


class Note(BaseModel):
    text: str = ""
    tags: list[str] = []


class Card(BaseModel):
    model_config = ConfigDict(frozen=True)
    title: str = ""
    notes: dict[str, list[int]] = {}
    inner: Note | None = None


@dataclass
class Box:
    items: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Still:
    items: list[int] = field(default_factory=list)


class S(BaseModel):
    messages: Annotated[list[Message], operator.add] = []
    notes: Annotated[list[Note], operator.add] = []
    dicts: Annotated[list[dict[str, Any]], operator.add] = []
    cards: list[Card] = []
    note: Note = Note()
    anything: Any = None
    numbers: set[int] = set()
    box: Box = Box()
    still: Still = Still()
    handle: Annotated[Any, Ephemeral] = None


def started(**fields: Any) -> StateManager[S]:
    state = StateManager(S)
    state.initialize(fields)
    return state


def test_what_the_caller_keeps_changing_is_not_the_state() -> None:
    note, loose, box, items = Note(tags=["a"]), {"k": [1, {2}], "q": deque([[1]])}, Box([1]), [{"x": [1]}]
    state = started(note=note, anything=loose, box=box)
    state.update({"notes": [note], "dicts": items})
    before = state.get()
    note.tags.append("later")
    note.text = "later"
    loose["k"].append("later")  # type: ignore[attr-defined]
    loose["q"][0].append("later")  # type: ignore[index, union-attr]
    box.items.append(9)
    items[0]["x"].append(9)
    items.append({})
    assert state.get() == before
    assert state.get().note == Note(tags=["a"])
    assert state.get().dicts == [{"x": [1]}]


def test_nothing_that_a_reader_does_changes_the_state() -> None:
    state = started(
        messages=[Message(role="user", metadata={"k": [1]})],
        notes=[Note(tags=["a"])],
        dicts=[{"x": [1]}],
        cards=[Card(notes={"a": [1]}, inner=Note())],
        anything={"deep": [Note(), [1]]},
        numbers={1},
        box=Box([1]),
        still=Still([1]),
    )
    before, text = pickle.dumps(state.get()), state.dump_checkpoint()
    for read in (state.get(), state.preview(), state.preview({"notes": []})):
        read.note.tags.append("x")
        read.note.text = "x"
        read.notes[0].tags.append("x")
        for note in read.notes:
            note.text = "x"
        next(reversed(read.notes)).text = "x"
        read.notes.copy()[0].text = "x"
        (read.notes + [])[0].text = "x"  # noqa: RUF005 - what __add__ gives
        ([] + read.notes)[0].text = "x"  # noqa: RUF005 - what __radd__ gives
        list(read.notes)[0].text = "x"  # noqa: RUF015 - what list() gives
        read.notes[:][0].text = "x"
        (read.notes * 2)[1].text = "x"
        sorted(read.notes, key=str)[0].text = "x"
        first, *_ = read.notes
        first.text = "x"
        read.dicts[0]["x"].append(2)
        read.cards.append(Card())
        assert read.cards[0].inner is not None
        read.cards[0].inner.text = "x"
        read.anything["deep"][0].tags.append("x")
        read.anything["deep"][1].append(2)
        read.numbers.add(2)
        read.box.items.append(2)
        read.__dict__["note"] = None
    assert pickle.dumps(state.get()) == before
    assert state.dump_checkpoint() == text
    again = StateManager(S)
    again.initialize(json.loads(json.dumps(state.dump_checkpoint())))
    assert again.get() == state.get()


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.messages.append(1),
        lambda s: s.messages.extend([1]),
        lambda s: s.messages.insert(0, 1),
        lambda s: s.messages.pop(),
        lambda s: s.messages.clear(),
        lambda s: s.messages.sort(),
        lambda s: s.messages.reverse(),
        lambda s: s.messages.remove(1),
        lambda s: s.messages.__setitem__(0, 1),
        lambda s: s.messages.__delitem__(0),
        lambda s: operator.iadd(s.messages, [1]),
        lambda s: operator.imul(s.messages, 2),
        lambda s: s.notes.append(1),
        lambda s: s.messages[0].metadata.update(a=1),
        lambda s: s.messages[0].metadata["k"].append(1),
        lambda s: s.messages[0].metadata["k"][1].add(1),
        lambda s: s.messages[0].metadata.__setitem__("a", 1),
        lambda s: s.messages[0].metadata.pop("k"),
        lambda s: operator.ior(s.messages[0].metadata, {}),
        lambda s: s.still.items.append(1),
    ],
)
def test_what_is_shared_refuses_a_change_and_tells_what_to_do(change: Any) -> None:
    state = started(
        messages=[Message(role="user", metadata={"k": [1, {2}]})], notes=[Note()], still=Still([1])
    )
    with pytest.raises(TypeError, match=r"read-only.*update"):
        change(state.get())


def test_a_read_only_container_works_wherever_its_parent_does() -> None:
    state = started(messages=[Message(role="user", metadata={"k": [1, {2}]})])
    got = state.get()
    metadata = got.messages[0].metadata
    assert isinstance(got.messages, list)
    assert got.messages == [Message(role="user", metadata={"k": [1, {2}]})]
    assert [Message(role="user", metadata={"k": [1, {2}]})] == got.messages
    assert isinstance(metadata, dict)
    assert json.dumps(got.messages[0].metadata["k"][:1]) == "[1]"
    assert TypeAdapter(list[Message]).validate_python(got.messages) == got.messages
    assert S.model_validate(got.model_dump()) == got
    assert repr(metadata) == "{'k': [1, {2}]}"
    for copied in (copy.deepcopy(metadata), pickle.loads(pickle.dumps(metadata))):
        assert (type(copied), type(copied["k"]), type(copied["k"][1])) == (dict, list, set)
        copied["k"].append(3)
    assert (type(copy.copy(metadata)), type(metadata.copy()), type(got.messages.copy())) == (dict, dict, list)
    deep = got.model_copy(deep=True)
    deep.messages.append(Message(role="user"))
    assert len(got.messages) == 1


def test_an_earlier_read_never_grows() -> None:
    state = started()
    reads = []
    for at in range(5):
        reads.append((at, state.get(), state.get().messages, state.get().notes, iter(state.get().messages)))
        state.update({"messages": [Message(role="user", content=str(at))], "notes": [Note(text=str(at))]})
    for count, read, messages, notes, walk in reads:
        assert len(read.messages) == len(messages) == len(notes) == len(list(walk)) == count


def test_walking_a_list_while_adding_to_it_ends() -> None:
    state = started(notes=[Note(), Note()])
    for _ in state.get().notes:
        state.update({"notes": [Note()]})
    assert len(state.get().notes) == 4


def test_a_read_copies_no_item_that_cannot_change() -> None:
    state = started(messages=[Message(role="user")] * 3, cards=[Card()])
    one, two = state.get(), state.get()
    assert one.messages is two.messages
    assert one.cards[0] is two.cards[0]


def test_an_append_goes_on_in_the_same_list_unless_a_reader_holds_it() -> None:
    state = started(messages=[Message(role="user")], notes=[Note()])

    def where() -> list[int]:
        return [id(state.get().messages), id(state.get().notes)]

    at_first = where()
    for _ in range(5):
        state.update({"messages": [Message(role="user")], "notes": [Note()]})
        assert where() == at_first
    held = state.get()
    state.update({"messages": [Message(role="user")], "notes": [Note()]})
    assert not set(where()) & set(at_first)
    assert len(held.messages) == len(held.notes) == 6


def test_an_ephemeral_value_is_the_very_object_and_is_never_saved() -> None:
    handle = object()
    state = started()
    state.update({"handle": handle})
    assert state.get().handle is handle
    assert "handle" not in state.dump_checkpoint()
    again = StateManager(S)
    again.initialize(state.dump_checkpoint())
    assert again.get().handle is None


def test_an_ephemeral_field_starts_from_its_default_again() -> None:
    made: list[list[int]] = []

    def make() -> list[int]:
        made.append([])
        return made[-1]

    from pydantic import Field

    class E(BaseModel):
        cache: Ephemeral[list[int]] = Field(default_factory=make)
        n: int = 0

    state = StateManager(E)
    state.initialize({"n": 1})
    state.update({"cache": [1]})
    again = StateManager(E)
    again.initialize(state.dump_checkpoint())
    assert (again.get().cache, again.get().n, len(made)) == ([], 1, 2)


def test_a_cycle_is_taken_in_and_named_by_the_save() -> None:
    from jianmu.errors import EncodeError

    loop: list[Any] = []
    loop.extend([loop, loop])
    state = started()
    last = state.dump_checkpoint()
    state.update({"anything": loop})
    with pytest.raises(EncodeError, match=r"anything.*contains itself"):
        state.dump_checkpoint()
    state.update({"anything": None})
    assert state.dump_checkpoint() == last
