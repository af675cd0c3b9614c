"""The line codec of file checkpoints, by its properties."""

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.errors import CheckpointFormatError, CipherError, EncodeError
from jianmu.memory.checkpoint.cipher import AesGcmCipher
from jianmu.memory.checkpoint.plain import encode_plain
from jianmu.memory.checkpoint.record import (
    BrokenRecordError,
    RecordCodec,
    is_complete,
    is_sound,
    step_of,
    thread_of,
    time_of,
)

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), plain, max_size=4)
ids = st.text(st.characters(), min_size=1, max_size=40)
codecs = st.sampled_from([RecordCodec(), RecordCodec(AesGcmCipher(b"k" * 32))])


@given(codec=codecs, thread_id=ids, step=st.integers(0, 2**70), state=objects, tree=st.none() | objects)
def test_what_is_encoded_is_decoded_equal_and_of_the_same_type(
    codec: RecordCodec, thread_id: str, step: int, state: dict[str, Any], tree: Any
) -> None:
    envelope = {"step": step, "state": state, "tree": tree, "runtime_metadata": {"state": state}}
    line = codec.encode("checkpoint", thread_id, encode_plain(envelope), time=12.5, step=step)
    assert b"\n" not in line
    decoded = codec.decode("checkpoint", thread_id, line)
    assert json.dumps(decoded) == json.dumps(envelope)
    assert (step_of(line), thread_of(line), is_sound(line), is_complete(line)) == (
        step,
        thread_id,
        True,
        True,
    )
    moment = time_of(line)
    assert moment is not None
    assert moment.timestamp() == 12.5


@given(codec=codecs, one=ids, other=ids, state=objects)
def test_a_copy_for_another_thread_is_the_same_checkpoint(
    codec: RecordCodec, one: str, other: str, state: dict[str, Any]
) -> None:
    envelope = {"step": 3, "state": state, "tree": None, "runtime_metadata": {}}
    line = codec.encode("checkpoint", one, encode_plain(envelope), time=1.0, step=3)
    copy = codec.copy(line, one, other, now=2.0)
    assert json.dumps(codec.decode("checkpoint", other, copy)) == json.dumps(envelope)
    assert time_of(copy) == time_of(line)
    if one != other:
        with pytest.raises((BrokenRecordError, CipherError)):
            codec.decode("checkpoint", one, copy)


@given(codec=codecs, line=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_decoded_or_refused_in_our_own_words(codec: RecordCodec, line: bytes) -> None:
    is_sound(line), is_complete(line), step_of(line), thread_of(line), time_of(line)
    with contextlib.suppress(BrokenRecordError, CheckpointFormatError, CipherError):
        codec.decode("checkpoint", "t", line)


@given(codec=codecs, state=objects, cut=st.integers(1, 400))
def test_no_part_of_a_record_is_complete(codec: RecordCodec, state: dict[str, Any], cut: int) -> None:
    envelope = {"step": 3, "state": state, "tree": None, "runtime_metadata": {}}
    line = codec.encode("checkpoint", "t", encode_plain(envelope), time=1.0, step=3)
    assert not is_complete(line[: -min(cut, len(line))])


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, -0.0, 2**80, -(2**63) - 1, 5e-324, "\u2028\x00"]
)
def test_values_that_json_readers_disagree_on_come_back(value: Any) -> None:
    envelope = {"step": 1, "state": {"v": value}, "tree": None, "runtime_metadata": {}}
    line = RecordCodec().encode("checkpoint", "t", encode_plain(envelope), time=1.0, step=1)
    found = RecordCodec().decode("checkpoint", "t", line)["state"]["v"]
    assert repr(found) == repr(value)


@pytest.mark.parametrize("depth", [199, 200, 201, 240])
def test_what_can_be_nested_can_be_read(depth: int) -> None:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    try:
        body = encode_plain({"step": 1, "state": {"v": value}})
    except EncodeError:
        return
    line = RecordCodec().encode("checkpoint", "t", body, time=1.0, step=1)
    assert RecordCodec().decode("checkpoint", "t", line)["state"]["v"] == value
