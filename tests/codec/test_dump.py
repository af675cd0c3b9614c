"""A dump is a frozen dict of plain data; its JSON text and its changes cost what is new."""

import copy
import json
import operator
import pickle
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import to_json

from jianmu import Message, StateManager
from jianmu.codec.delta import apply_changes
from jianmu.codec.dump import StateDump, changes_between, dump_json


class Chat(BaseModel):
    messages: Annotated[list[Message], operator.add] = []
    notes: dict[str, Any] = {}
    count: int = 0


def chat(*texts: str) -> StateManager[Chat]:
    state = StateManager(Chat)
    state.initialize()
    state.update({"messages": [Message(role="user", content=text) for text in texts]})
    return state


def test_it_is_a_dict_in_every_way_that_reads() -> None:
    dump = chat("a", "b").dump_checkpoint()
    same = json.loads(dump_json(dump))
    assert isinstance(dump, dict)
    assert dump == same
    assert same == dump
    assert (dump != same) is False
    assert json.loads(json.dumps(dump)) == same
    assert json.loads(json.dumps(dump, indent=1, sort_keys=True)) == same
    assert json.loads(json.dumps({"state": dump}))["state"] == same
    assert {**dump} == dict(dump) == dump.copy() == copy.copy(dump) == dump | {} == {} | dump == same
    assert dict(dump.items()) == dict(zip(dump.keys(), dump.values(), strict=True)) == same
    assert list(dump) == list(same)
    assert len(dump) == len(same)
    assert "count" in dump
    assert dump.get("nothing", 7) == 7
    assert dump.get("count") == 0
    assert repr(dump) == repr(same)
    assert pickle.loads(pickle.dumps(dump)) == same
    merged: dict[str, Any] = {}
    merged.update(dump)
    assert merged == same


def test_a_dump_that_nobody_read_still_compares_and_copies() -> None:
    state = chat("a")
    assert state.dump_checkpoint() == state.dump_checkpoint()
    assert copy.deepcopy(state.dump_checkpoint()) == state.dump_checkpoint()


def test_an_encoder_that_looks_past_its_methods_fails_loudly() -> None:
    with pytest.raises(Exception, match="Unable to serialize"):
        to_json(chat("a").dump_checkpoint())


@pytest.mark.parametrize(
    "change",
    [
        lambda dump: dump.update(count=1),
        lambda dump: dump.__setitem__("count", 1),
        lambda dump: dump.pop("count"),
        lambda dump: dump.clear(),
        lambda dump: dump.setdefault("x", 1),
        lambda dump: dump.__delitem__("count"),
        lambda dump: operator.ior(dump, {"count": 1}),
    ],
)
def test_it_never_changes(change: Any) -> None:
    dump = chat("a").dump_checkpoint()
    with pytest.raises(TypeError, match="dict\\(dump\\)"):
        change(dump)
    assert dump["count"] == 0


def test_what_a_dump_hands_out_touches_neither_the_state_nor_another_dump() -> None:
    state = chat("a")
    first, second = state.dump_checkpoint(), state.dump_checkpoint()
    first["messages"].append("rubbish")
    first["messages"][0]["v"]["content"] = "rubbish"
    assert second["messages"][0]["v"]["content"] == "a"
    assert state.get().messages[0].content == "a"
    assert json.loads(dump_json(first)) == state.dump_checkpoint()
    deep = copy.deepcopy(second)
    assert type(deep) is dict
    deep["messages"].clear()
    assert len(second["messages"]) == 1


def test_an_older_dump_does_not_see_what_came_later() -> None:
    state = chat()
    dumps = []
    for at in range(700):
        dumps.append(state.dump_checkpoint())
        state.update({"messages": [Message(role="user", content=str(at))], "count": at})
    for length, dump in enumerate(dumps):
        assert len(dump["messages"]) == length
        assert len(json.loads(dump_json(dump))["messages"]) == length
        if length:
            assert dump["messages"][-1]["v"]["content"] == str(length - 1)
            assert dump["count"] == length - 1


notes = st.dictionaries(st.text(max_size=2), st.integers() | st.lists(st.integers()))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_changes_between_any_two_dumps_lead_from_one_to_the_other(data: st.DataObject) -> None:
    state = chat("start")
    dumps = [state.dump_checkpoint()]
    for _ in range(data.draw(st.integers(1, 8))):
        grow = data.draw(st.integers(0, 300))
        state.update({"messages": [Message(role="user", content=f"{at}") for at in range(grow)]})
        if data.draw(st.booleans()):
            state.update(
                {
                    "notes": data.draw(
                        st.dictionaries(st.text(max_size=2), st.integers() | st.lists(st.integers()))
                    )
                }
            )
        if data.draw(st.integers(0, 5)) == 0:
            state.initialize({"count": 3})
        dumps.append(state.dump_checkpoint())
    old, new = data.draw(st.sampled_from(dumps)), data.draw(st.sampled_from(dumps))
    changes = json.loads(json.dumps(changes_between(old, new)))
    result = apply_changes(copy.deepcopy(old), changes)
    assert dump_json(result) == dump_json(new)
    plain = apply_changes(copy.deepcopy(old), changes_between(dict(old), new))
    assert dump_json(plain) == dump_json(new)


def test_only_what_is_new_is_in_the_changes() -> None:
    state = chat(*map(str, range(1000)))
    before = state.dump_checkpoint()
    state.update({"messages": [Message(role="assistant", content="new")]})
    ((op, path, items),) = changes_between(before, state.dump_checkpoint())
    assert (op, path, [item["v"]["content"] for item in items]) == ("append", ["messages"], ["new"])
    assert changes_between(before, before) == []


def test_a_dump_encodes_each_item_once(monkeypatch: pytest.MonkeyPatch) -> None:
    state = chat(*map(str, range(50)))
    state.dump_checkpoint()
    encoded: list[Any] = []
    encode = state._codec.encode
    monkeypatch.setattr(
        state._codec, "encode", lambda value, path=(): encoded.append(path) or encode(value, path)
    )
    state.update({"messages": [Message(role="user", content="51")], "count": 2})
    state.dump_checkpoint()
    state.dump_checkpoint()
    assert encoded == [("messages", 50), ("count",)]


def test_the_text_of_an_envelope_is_that_of_its_plain_data() -> None:
    dump = chat("你好\u2028", "b").dump_checkpoint()
    envelope = {"step": 3, "state": dump, "tree": {"0": "RUNNING"}, "runtime_metadata": {}}
    assert dump_json(envelope) == to_json({**envelope, "state": dict(dump)})
    assert dump_json(StateDump({"a": [1]})) == b'{"a":[1]}'
    assert dump_json({}) == b"{}"
    assert dump_json(chat().dump_checkpoint()) == b'{"~version":1,"messages":[],"notes":{},"count":0}'
