"""The codec keeps every kind it claims, and refuses the rest by name."""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, field_validator
from pydantic_core import from_json, to_json

from jianmu.codec import Codec
from jianmu.errors import DecodeError, EncodeError
from tests.codec.kinds import CLASSES, Frozen, Level, Loose, Mood, Node, Pair, plain, values
from tests.codec.likeness import difference

CODEC = Codec(*CLASSES)


def is_plain(data: Any) -> bool:
    if type(data) is dict:
        return all(type(key) is str and is_plain(key) and is_plain(item) for key, item in data.items())
    if type(data) is list:
        return all(map(is_plain, data))
    if type(data) is str:
        data.encode()
        return True
    if type(data) is int:
        return -(2**63) <= data < 2**63
    if type(data) is float:
        return data - data == 0
    return data is None or type(data) is bool


@given(values)
@settings(max_examples=250, deadline=None)
def test_every_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    data = CODEC.encode(value)
    assert is_plain(data)
    assert difference(CODEC.decode(data), value) is None
    assert difference(CODEC.decode(json.loads(json.dumps(data))), value) is None
    assert difference(CODEC.decode(json.loads(json.dumps(data, ensure_ascii=False).encode())), value) is None
    assert difference(CODEC.decode(from_json(to_json(data))), value) is None


@given(values)
@settings(max_examples=80, deadline=None)
def test_encoding_what_was_decoded_gives_the_same_data(value: Any) -> None:
    data = CODEC.encode(value)
    assert json.dumps(CODEC.encode(CODEC.decode(data))) == json.dumps(data)


@given(values)
@settings(max_examples=100, deadline=None)
def test_what_a_migration_leaves_alone_is_not_changed_by_it(value: Any) -> None:
    data = CODEC.encode(value)
    assert CODEC.encode(CODEC.decode_loosely(data)) == data


@given(plain)
@settings(max_examples=300, deadline=None)
def test_plain_data_is_its_own_encoding_unless_it_holds_the_tag_key_or_a_negative_zero(data: Any) -> None:
    text = json.dumps(data)
    if '"~"' not in text and "-0.0" not in text:
        assert json.dumps(CODEC.encode(data)) == text
    assert difference(CODEC.decode(CODEC.encode(data)), data) is None


TAGS = st.sampled_from([
    "int", "float", "str", "bytes", "bytearray", "complex", "decimal", "fraction", "range", "datetime",
    "date", "time", "timedelta", "uuid", "path", "posixpath", "windowspath", "ipv4", "ipv6", "url",
    "bytesize", "dict", "tuple",
    "set",
    "frozenset", "deque", "ordereddict", "counter", "defaultdict", "enum", "model", "dataclass", "namedtuple",
    "?",
])  # fmt: skip
NAMES = st.sampled_from(
    [
        "tests.codec.kinds:Mood",
        "Node",
        "tests.codec.kinds:Leaf",
        "Crate",
        "Pair",
        "Loose",
        "Rooted",
        "os:system",
        3,
        None,
    ]
)
KEYS = ["v", "of", "set", "extra", "private", "max", "factory", "zone", "name", "by", "fold", "inner", "left"]
hostile = st.recursive(
    plain,
    lambda inner: st.builds(
        lambda tag, of, rest: {"~": tag, "of": of, **rest},
        st.one_of(TAGS, inner),
        NAMES,
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    ),
    max_leaves=10,
)


@given(hostile)
@settings(max_examples=600, deadline=None)
def test_no_data_makes_decode_do_anything_but_return_a_value_or_raise_decode_error(data: Any) -> None:
    try:
        value = CODEC.decode(data)
    except DecodeError:
        return
    CODEC.encode(value)


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        (SecretStr("hunter2"), "f", "Ephemeral"),
        ({"a": [1, SecretStr("hunter2")]}, "f.a.1", "SecretStr"),
        (lambda: 0, "f", "function"),
        (len, "f", "builtin_function_or_method"),
        (threading.Lock(), "f", "lock"),
        (object(), "f", "object"),
        (int, "f", "type"),
        (ValueError("x"), "f", "ValueError"),
        (iter([]), "f", "list_iterator"),
        (..., "f", "ellipsis"),
        (np.float64(1.5), "f", "item"),
        (np.int64(7), "f", "item"),
        (np.bool_(True), "f", "item"),
        (np.zeros(2), "f", "tolist"),
        ([1 << 70_000], "f.0", "65,536"),
        (defaultdict(lambda: 0), "f", "factory"),
        ([[], {"k": {"x": {1, (2, Exception)}}}], "f.1.k.x.", "type"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_path(value: Any, path: str, words: str) -> None:
    with pytest.raises(EncodeError, match=words) as caught:
        Codec().encode(value, ("f",))
    assert ".".join(map(str, caught.value.path)).startswith(path)
    assert "hunter2" not in str(caught.value)


class Text(str):
    __slots__ = ()


class Zone(tzinfo):
    def utcoffset(self, _: object) -> Any:
        return UTC.utcoffset(None)


@pytest.mark.parametrize(
    "value",
    [Text("x"), type("L", (list,), {})([1]), type("D", (dict,), {})(), datetime(2026, 1, 1, tzinfo=Zone())],
)
def test_a_subclass_of_a_builtin_is_refused_and_never_turned_into_the_builtin(value: Any) -> None:
    with pytest.raises(EncodeError):
        CODEC.encode({"x": value}, ("f",))


def test_a_cycle_is_named_where_it_closes() -> None:
    loop: list[Any] = [1]
    loop.append({"back": loop})
    with pytest.raises(EncodeError, match="contains itself") as caught:
        CODEC.encode({"a": loop}, ("f",))
    assert caught.value.path == ("f", "a", 1, "back")
    node = Node()
    node.inner = [node]
    with pytest.raises(EncodeError, match="contains itself"):
        CODEC.encode(node)
    both: list[Any] = []
    both.extend([both, both])
    with pytest.raises(EncodeError, match="contains itself"):
        CODEC.encode(both)


@pytest.mark.parametrize(
    "wrap", [lambda x: [x], lambda x: {"k": x}, lambda x: (x,), lambda x: {1: x}, lambda x: Node(inner=x)]
)
def test_deep_nesting_is_kept_up_to_a_limit_and_refused_beyond_it(wrap: Any) -> None:
    value: Any = 0
    for _ in range(45):
        value = wrap(value)
    data = CODEC.encode(value)
    assert (
        difference(
            CODEC.decode(from_json(to_json({"envelope": {"state": data}}))["envelope"]["state"]), value
        )
        is None
    )
    for _ in range(sys.getrecursionlimit() * 3):
        value = [value]
    with pytest.raises(EncodeError, match="150 levels"):
        CODEC.encode(value)


def test_deeply_nested_stored_data_is_an_error_and_not_a_crash() -> None:
    for inner in ([], {"~": "tuple", "v": []}, {"~": "dict", "v": []}):
        data: Any = inner
        for _ in range(5000):
            data = {"~": "tuple", "v": [data]} if isinstance(inner, dict) else [data]
        with pytest.raises(DecodeError, match="levels"):
            CODEC.decode(data)


def test_the_widest_int_is_kept_and_read_within_python_s_own_limits() -> None:
    value = (1 << 65_536) - 1
    assert CODEC.decode(json.loads(json.dumps(CODEC.encode(value)))) == value
    assert CODEC.decode(CODEC.encode(-value)) == -value


def test_a_class_that_is_not_mentioned_is_refused_on_both_sides() -> None:
    with pytest.raises(EncodeError, match=r"Mood.*annotation"):
        Codec(Node).encode([Mood.CALM], ("f",))
    with pytest.raises(DecodeError, match="Mood"):
        Codec(Node).decode(CODEC.encode(Mood.CALM))
    with pytest.raises(DecodeError, match="os:system"):
        CODEC.decode({"~": "model", "of": "os:system", "v": {}})


def test_two_classes_of_one_name_are_ambiguous() -> None:
    def make() -> type[BaseModel]:
        class Twin(Node):
            pass

        return Twin

    first, second = make(), make()
    with pytest.raises(EncodeError, match="different names"):
        CODEC.encode(first())
    assert type(Codec(first).decode(Codec(first).encode(first()))) is first
    assert second is not first


def test_a_class_that_moved_to_another_module_is_found_by_its_name() -> None:
    data = CODEC.encode(Level.HIGH)
    data["of"] = data["of"].replace("tests.codec.kinds", "__main__")
    assert CODEC.decode(data) is Level.HIGH


def test_a_subclass_loaded_after_the_codec_was_made_is_kept() -> None:
    codec = Codec(list[Node])

    class Late(Node):
        z: int = 0

    assert codec.decode(codec.encode([Late(z=3)])) == [Late(z=3)]


def test_a_stored_model_that_is_no_longer_valid_is_an_error_with_its_path() -> None:
    data = CODEC.encode({"nodes": [Node(name="a")]})
    data["nodes"][0]["v"]["name"] = 5
    with pytest.raises(DecodeError, match=r"f\.nodes\.0.*Node.*name"):
        CODEC.decode(data, ("f",))
    data["nodes"][0]["v"] = {"gone": 1}
    with pytest.raises(DecodeError, match="no field 'gone'"):
        CODEC.decode(data, ("f",))


def test_a_removed_enum_member_is_an_error() -> None:
    with pytest.raises(DecodeError, match="no member 'GONE'"):
        CODEC.decode({"~": "enum", "of": "tests.codec.kinds:Mood", "v": "GONE"})


def test_named_tuple_with_other_fields_now_is_an_error() -> None:
    data = CODEC.encode(Pair(1, 2))
    data["v"]["more"] = 3
    with pytest.raises(DecodeError, match="other fields"):
        CODEC.decode(data)


class Prefixed(BaseModel):
    name: str
    size: float = 0.0

    @field_validator("name")
    @classmethod
    def prefix(cls, value: str) -> str:
        return "p-" + value


def test_a_validator_that_changes_its_own_result_does_not_do_so_again_on_restore() -> None:
    codec = Codec(Prefixed)
    value = Prefixed(name="x")
    assert codec.decode(codec.encode(value)).name == "p-x"


def test_a_value_stored_under_an_older_annotation_is_brought_to_the_present_one() -> None:
    codec = Codec(Prefixed)
    data = codec.encode(Prefixed(name="x", size=2.0))
    data["v"]["size"] = 2
    back = codec.decode(data)
    assert (type(back.size), back.name) == (float, "p-x")


def test_a_half_built_model_is_refused() -> None:
    with pytest.raises(EncodeError, match="without its field"):
        Codec(Prefixed).encode(Prefixed.model_construct(), ("f",))


def test_fields_set_extra_fields_and_private_attributes_are_kept() -> None:
    loose = Loose(a=1, b=(2,))  # type: ignore[call-arg]
    loose._hidden = {3}
    back = CODEC.decode(CODEC.encode(loose))
    assert (back.b, back._hidden, back.model_fields_set) == ((2,), {3}, {"a", "b"})
    assert CODEC.decode(CODEC.encode(Frozen())).model_fields_set == set()


def test_the_plain_form_shares_nothing_with_the_value() -> None:
    value = {"a": [1]}
    data = CODEC.encode(value)
    value["a"].append(2)
    assert data == {"a": [1]}


def test_decimals_keep_their_zeros_and_paths_their_odd_bytes() -> None:
    assert str(CODEC.decode(CODEC.encode(Decimal("0.10")))) == "0.10"
    from pathlib import Path

    odd = Path("/tmp/\udcff")
    assert CODEC.decode(CODEC.encode(odd)) == odd
