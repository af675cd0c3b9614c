"""The envelope: what is taken, and what is refused without an error."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.memory.checkpoint import extract_checkpoint_payload, make_checkpoint_envelope

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
objects = st.dictionaries(st.text(), plain)


def test_it_has_four_fields() -> None:
    assert make_checkpoint_envelope(3, {"n": 1}, {"0": "RUNNING"}, {"m": 1}) == {
        "step": 3,
        "state": {"n": 1},
        "tree": {"0": "RUNNING"},
        "runtime_metadata": {"m": 1},
    }
    assert make_checkpoint_envelope(step=0, state_dump={}) == {
        "step": 0,
        "state": {},
        "tree": None,
        "runtime_metadata": {},
    }


@given(st.integers(0), objects, st.none() | st.dictionaries(st.text(), st.text()), objects)
def test_what_is_made_is_extracted_equal_through_json(
    step: int, state: dict[str, Any], tree: dict[str, str] | None, metadata: dict[str, Any]
) -> None:
    envelope = make_checkpoint_envelope(step, state, tree, metadata)
    assert extract_checkpoint_payload(envelope) == envelope
    assert extract_checkpoint_payload(json.loads(json.dumps(envelope))) == envelope


@pytest.mark.parametrize(
    "record",
    [
        {"payload": {"step": 1, "state": {}}},
        {"step": 1, "payload": {"state": {}}},
        {"step": 1},
        {"state": {}},
        {},
        {"step": "1", "state": {}},
        {"step": True, "state": {}},
        {"step": 1, "state": []},
        {"step": 1, "state": None},
        [1, {}],
        None,
        "step state",
        1,
    ],
)
def test_another_layout_is_refused_without_an_error(record: object) -> None:
    assert extract_checkpoint_payload(record) is None


def test_unknown_keys_stay_and_missing_ones_get_their_default() -> None:
    record = {"step": 1, "state": {}, "from_the_future": [1]}
    assert extract_checkpoint_payload(record) == {
        "step": 1,
        "state": {},
        "tree": None,
        "runtime_metadata": {},
        "from_the_future": [1],
    }
    assert record == {"step": 1, "state": {}, "from_the_future": [1]}
