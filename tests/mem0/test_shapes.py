"""What needs no mem0 at all: answers' shapes, ids, imports."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.memory.long_term.mem0 import Mem0LongTermMemory
from jianmu.memory.long_term.mem0_scope import pack_metadata, unpack_metadata, user_id_of


def test_parts_are_joined_by_slashes() -> None:
    assert user_id_of(("agent", "thread")) == "agent/thread"
    assert user_id_of(("我的", "代理")) == "我的/代理"
    assert user_id_of(("a/b", "100%", "*", "x y")) == "a%2Fb/100%25/%2A/x%20y"


namespaces = st.lists(st.text(min_size=1, max_size=6), max_size=4).map(tuple)


@given(namespaces, namespaces)
def test_two_namespaces_share_a_user_id_only_if_equal(one: tuple[str, ...], two: tuple[str, ...]) -> None:
    assert (user_id_of(one) == user_id_of(two)) == (one == two)
    assert not set(user_id_of(one)) & set("* \t\n")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text().map(lambda s: "m_" + s), json_values, max_size=5))
def test_metadata_comes_back_as_it_was_and_only_scalars_reach_the_store(metadata: dict[str, object]) -> None:
    packed = pack_metadata(metadata, "k")
    assert all(isinstance(value, str | int | float | bool) for value in packed.values())
    assert unpack_metadata(packed) == {**metadata, "key": "k"}


@pytest.mark.parametrize(
    ("answer", "rows"),
    [
        ({"results": [{"id": 1}]}, [{"id": 1}]),
        ([{"id": 2}], [{"id": 2}]),
        ({}, []),
        (None, []),
        ({"results": None}, []),
    ],
)
def test_results_are_taken_from_a_dict_or_a_list(answer: object, rows: list[object]) -> None:
    assert Mem0LongTermMemory._extract_results(answer) == rows


def test_an_item_is_normalised() -> None:
    normal = Mem0LongTermMemory._normalize_item
    assert normal({"id": "1", "memory": "text", "metadata": {"a": 1}, "score": 0.5}) == {
        "id": "1",
        "content": "text",
        "metadata": {"a": 1},
        "score": 0.5,
    }
    assert normal({"content": "other", "metadata": None}) == {
        "id": None,
        "content": "other",
        "metadata": {},
        "score": None,
    }


def test_construction_imports_nothing_and_starts_no_thread() -> None:
    code = (
        "import sys, threading; from jianmu.memory.long_term.mem0 import Mem0LongTermMemory as M;"
        "M(); M(config={}); M(infer=False); M(api_key='m0-x');"
        "assert not {'mem0', 'posthog', 'qdrant_client', 'openai'} & set(sys.modules);"
        "assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_telemetry_is_off_unless_the_user_set_it() -> None:
    code = (
        "import os; os.environ.pop('MEM0_TELEMETRY', None);"
        "from jianmu.memory.long_term.mem0_calls import _import_mem0; _import_mem0();"
        "import threading; from mem0.memory import telemetry;"
        "assert os.environ['MEM0_TELEMETRY'] == 'False'; assert telemetry.MEM0_TELEMETRY is False;"
        "assert not [t for t in threading.enumerate() if 'posthog' in type(t).__module__]"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_a_missing_package_is_an_error_with_the_install_line() -> None:
    code = (
        "import sys; sys.modules['mem0'] = None\n"
        "from jianmu.memory.long_term.mem0 import Mem0LongTermMemory\n"
        "from jianmu.errors import MissingExtraError\n"
        "try: Mem0LongTermMemory().record('x')\n"
        'except MissingExtraError as e: assert "the extra [mem0]" in str(e)\n'
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_key_is_one_clear_error_when_used(tmp_path: object) -> None:
    code = (
        "import os; [os.environ.pop(k, None) for k in ('OPENAI_API_KEY', 'MEM0_API_KEY')]\n"
        "from jianmu.memory.long_term.mem0 import Mem0LongTermMemory\n"
        "from jianmu.errors import LongTermMemoryError\n"
        "m = Mem0LongTermMemory()\n"
        "try: m.record('x')\n"
        "except LongTermMemoryError as e: assert 'pass a key' in str(e), e\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=str(tmp_path))
