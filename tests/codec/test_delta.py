"""A difference, applied to the old data, gives the new data: values, types and the order of keys."""

import json
from copy import deepcopy
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jianmu.codec.delta import apply_changes, diff, merge_changes
from tests.codec.kinds import plain

trees = st.dictionaries(st.sampled_from("abcd"), plain, max_size=4)


def text(data: Any) -> str:
    return json.dumps(data)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two trees of which the second is mostly the first."""
    old = draw(trees)
    new = deepcopy(old)
    for _ in range(draw(st.integers(0, 3))):
        place = new
        while place and draw(st.booleans()):
            inner = place[draw(st.sampled_from(sorted(place)))]
            if not isinstance(inner, dict):
                if isinstance(inner, list):
                    inner.append(draw(plain))
                break
            place = inner
        key = draw(st.sampled_from("abcd"))
        change = draw(st.sampled_from(["set", "del", "move", "number"]))
        if change == "set":
            place[key] = draw(plain)
        elif change == "number":
            place[key] = draw(st.sampled_from([0, 0.0, -0.0, False, True, 1, 1.0, None]))
        elif key in place:
            value = place.pop(key)
            if change == "move":
                place[key] = value
    return old, new


@given(st.one_of(neighbours(), st.tuples(trees, trees)))
@settings(max_examples=600, deadline=None)
def test_applying_a_difference_gives_the_new_data_exactly(
    pair: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    old, new = pair
    before = text(old), text(new)
    changes = json.loads(json.dumps(diff(old, new)))
    assert text(apply_changes(deepcopy(old), changes)) == text(new)
    assert (text(old), text(new)) == before


@given(trees)
def test_equal_data_has_no_difference(tree: dict[str, Any]) -> None:
    assert diff(tree, deepcopy(tree)) == []


def test_a_longer_list_is_an_append_and_one_changed_key_is_one_change() -> None:
    old = {"messages": [1, 2], "more": {"x": {"y": 1, "z": 2}}}
    new = {"messages": [1, 2, 3], "more": {"x": {"y": 1, "z": 3}}}
    assert diff(old, new) == [["append", ["messages"], [3]], ["set", ["more", "x", "z"], 3]]


def test_one_true_and_one_point_zero_are_told_apart() -> None:
    assert len(diff({"a": 1, "b": 1, "c": [0.0]}, {"a": True, "b": 1.0, "c": [-0.0]})) == 3


@given(st.lists(trees, min_size=2, max_size=6))
@settings(max_examples=400, deadline=None)
def test_merged_changes_do_what_the_single_ones_did(states: list[dict[str, Any]]) -> None:
    changes = [change for old, new in pairwise(states) for change in diff(old, new)]
    merged = merge_changes(json.loads(json.dumps(changes)))
    assert len(merged) <= len(changes)
    assert text(apply_changes(deepcopy(states[0]), json.loads(json.dumps(merged)))) == text(states[-1])


@given(st.lists(neighbours(), min_size=1, max_size=1), st.data())
@settings(max_examples=400, deadline=None)
def test_merged_changes_of_neighbouring_states_do_too(
    start: list[tuple[dict[str, Any], dict[str, Any]]], data: st.DataObject
) -> None:
    states = [start[0][0], start[0][1]]
    for _ in range(data.draw(st.integers(0, 4))):
        following = deepcopy(states[-1])
        key = data.draw(st.sampled_from("abcd"))
        value = following.get(key)
        if isinstance(value, list):
            value.append(data.draw(plain))
        elif isinstance(value, dict):
            value[data.draw(st.sampled_from("abcd"))] = data.draw(plain)
        else:
            following[key] = data.draw(st.one_of(plain, st.just([]), st.just({})))
        states.append(following)
    changes = [change for old, new in pairwise(states) for change in diff(old, new)]
    merged = merge_changes(json.loads(json.dumps(changes)))
    assert text(apply_changes(deepcopy(states[0]), json.loads(json.dumps(merged)))) == text(states[-1])


def test_appends_to_one_list_and_settings_of_one_field_merge_into_one_each() -> None:
    changes = [
        each for n in range(50) for each in (["append", ["messages"], [n]], ["set", ["meta", "ticks"], n])
    ]
    assert merge_changes(changes) == [
        ["append", ["messages"], list(range(50))],
        ["set", ["meta", "ticks"], 49],
    ]
