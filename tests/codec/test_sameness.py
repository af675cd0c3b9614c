"""What is called the same is the same in every respect; `==` is not enough."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jianmu.codec.sameness import same
from tests.codec.kinds import Crate, Leaf, Loose, Message, Node, Pair, Slotted, hashables
from tests.codec.likeness import difference

tokyo = timezone(timedelta(hours=9))
confusable = st.sampled_from([
    0, 0.0, -0.0, False, 0j, Decimal("0"), Decimal("0.0"), 1, True, 1.0, float("nan"), "", b"", None,
    datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 9, tzinfo=tokyo), datetime(2026, 1, 1),
    datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9), "JST")), datetime(2026, 1, 1, fold=1),
    time(1), time(1, fold=1),
])  # fmt: skip


def _wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.lists(st.tuples(st.sampled_from(["a", "b"]), inner), max_size=2)
    return st.one_of(
        st.lists(inner, max_size=2),
        st.lists(inner, max_size=2).map(tuple),
        st.sets(confusable, max_size=2),
        st.frozensets(confusable, max_size=2),
        pairs.map(dict),
        pairs.map(OrderedDict),
        pairs.map(lambda found: defaultdict(int, found)),
        pairs.map(lambda found: Counter(dict(found))),
        st.lists(inner, max_size=2).map(deque),
        st.builds(Node, inner=inner),
        st.builds(Leaf, inner=inner),
        st.builds(Loose, a=inner, b=inner),
        st.builds(Loose, a=inner),
        st.builds(Pair, inner, inner),
        st.builds(Crate, inner),
        st.builds(Slotted, inner),
        st.builds(Message, role=st.just("user"), metadata=pairs.map(dict)),
    )


look_alikes = st.recursive(confusable, _wrapped, max_leaves=3)


@given(look_alikes, look_alikes)
@settings(max_examples=1500, deadline=None)
def test_values_that_differ_in_anything_are_never_the_same(a: Any, b: Any) -> None:
    if same(a, b):
        assert difference(a, b) is None


@given(hashables())
@settings(max_examples=100, deadline=None)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert same(value, value)
    assert same([value], [value])


def test_what_compares_in_its_own_way_is_not_asked() -> None:
    assert not same(np.zeros(3), np.zeros(3))
    assert not same([np.float64(1)], [np.float64(1)])
