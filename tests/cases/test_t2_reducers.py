"""An additive reducer takes what is added once, however often the state is saved and loaded."""

import json
import operator
from typing import Annotated

from pydantic import BaseModel

from jianmu import StateManager
from jianmu.codec.dump import dump_json


class S(BaseModel):
    log: Annotated[list[str], operator.add] = []


def reloaded(state: StateManager[S]) -> StateManager[S]:
    again = StateManager(S)
    again.initialize(json.loads(dump_json(state.dump_checkpoint())))
    return again


def test_only_the_delta_is_reduced_and_only_once() -> None:
    state = StateManager(S)
    state.initialize({"log": ["in"]})
    state.update({"log": ["a"]})
    for _ in range(5):
        state = reloaded(state)
    state.update({"log": ["b"]})
    state.update({"log": []})
    for _ in range(5):
        state = reloaded(state)
    assert state.get().log == ["in", "a", "b"]
