"""A guarded read refuses assignment and is in all else the model it was."""

from __future__ import annotations

import copy
import functools
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from jianmu.codec import Codec
from jianmu.errors import StateError
from jianmu.state.reading import refuse_assignment


class Inner(BaseModel):
    n: int = 0


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")
    word: str = "a"
    inner: Inner = Inner()

    @functools.cached_property
    def shout(self) -> str:
        return self.word.upper()


class Outer(BaseModel):
    held: Model


def guarded() -> Model:
    return refuse_assignment(Model(word="b", inner=Inner(n=1), more=2), "set {name} elsewhere")


@pytest.mark.parametrize("name", ["word", "inner", "more", "new"])
def test_assigning_raises_with_the_remedy_and_changes_nothing(name: str) -> None:
    model = guarded()
    for _ in range(2):  # pydantic remembers how it assigned the first time
        with pytest.raises(StateError, match=rf"Model\.{name} was assigned.*set {name} elsewhere"):
            setattr(model, name, 3)
    assert model == Model(word="b", inner=Inner(n=1), more=2)


def test_the_same_class_stays_free_elsewhere() -> None:
    with pytest.raises(StateError):
        guarded().word = "c"
    free = Model()
    free.word = "c"
    assert free.word == "c"


def test_it_is_equal_dumps_and_validates_as_before() -> None:
    model, same = guarded(), Model(word="b", inner=Inner(n=1), more=2)
    assert type(model) is Model
    assert model == same
    assert same == model
    assert repr(model) == repr(same)
    assert model.model_dump() == same.model_dump()
    assert model.model_dump_json() == same.model_dump_json()
    assert json.loads(json.dumps(dict(model), default=dict))["inner"] == {"n": 1}
    assert Outer(held=model).held == same
    assert Outer.model_validate({"held": model}).model_dump() == {"held": same.model_dump()}
    assert TypeAdapter(Model).dump_python(model) == same.model_dump()
    codec = Codec(Outer)
    assert codec.decode(codec.encode(model)) == same


def test_a_cached_property_is_still_computed() -> None:
    assert guarded().shout == "B"


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda model: model.model_copy(),
        lambda model: model.model_copy(deep=True),
        lambda model: model.model_copy(update={"word": "b"}),
        lambda model: pickle.loads(pickle.dumps(model)),
    ],
)
def test_a_copy_is_free(copied: Callable[[Model], Any]) -> None:
    own = copied(guarded())
    assert own == guarded()
    own.word = "c"
    own.fresh = 1
    assert (own.word, own.fresh) == ("c", 1)
