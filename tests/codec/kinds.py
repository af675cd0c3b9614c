"""Strategies for every kind that the codec keeps."""

from __future__ import annotations

import enum
import ipaddress
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from hypothesis import strategies as st
from pydantic import (
    AnyUrl,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    HttpUrl,
    PostgresDsn,
    PrivateAttr,
    RootModel,
)
from pydantic_core import TzInfo

from jianmu import Message


class Mood(enum.Enum):
    CALM = "calm"
    WILD = ("wild", 2)
    ALSO_CALM = "calm"  # noqa: PIE796 - an alias, on purpose


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.StrEnum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Node(BaseModel):
    name: str = ""
    inner: Any = None


class Leaf(Node):
    extra_field: Any = None


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    held: Any = None
    items: list[Any] = Field(default_factory=list, alias="Items")


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: Any = None
    _hidden: Any = PrivateAttr(default=None)


class Rooted(RootModel[list[Any]]):
    pass


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Crate:
    label: Any
    count: Any = field(init=False, default=0)


@dataclass(frozen=True, slots=True)
class Slotted:
    label: Any


CLASSES: tuple[Any, ...] = (
    Mood, Level, Colour, Rights, Bits, Node, Frozen, Loose, Rooted, Pair, Crate, Slotted, Message,
)  # fmt: skip

# Lone surrogates too, which hypothesis leaves out unless asked.
texts = st.text(st.characters(exclude_categories=()), max_size=8)
ints = st.one_of(st.integers(), st.integers(-(2**70), 2**70), st.integers(min_value=2**62, max_value=2**66))
zones = st.one_of(
    st.none(),
    st.timezones(),
    st.just(UTC),
    st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)), texts),
    st.integers(-86_000, 86_000).map(TzInfo),
)
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    ints,
    st.floats(),
    texts,
    st.sampled_from(["~", "v", "of"]),
    st.binary(max_size=8),
    st.decimals(allow_nan=False),
    st.just(Decimal("NaN")),
    st.decimals(allow_nan=False).map(lambda value: value * Decimal("1.00")),
    st.fractions(),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(timezones=zones, allow_imaginary=True),
    st.builds(lambda value, fold: value.replace(fold=fold), st.datetimes(timezones=zones), st.integers(0, 1)),
    st.times(timezones=zones),
    st.timedeltas(),
    st.uuids(),
    st.builds(range, st.integers(), st.integers(), st.integers(1, 2**70)),
    st.builds(PurePosixPath, texts),
    st.builds(PureWindowsPath, texts),
    st.ip_addresses(),
    st.sampled_from(
        [
            ipaddress.ip_network("10.0.0.0/8"),
            ipaddress.ip_network("fe80::/10"),
            ipaddress.ip_interface("10.1.2.3/8"),
            ipaddress.ip_interface("fe80::1/64"),
            ByteSize(5),
            HttpUrl("https://user:pw@example.org/a?b=c#d"),
            AnyUrl("s3://bucket/键"),
            PostgresDsn("postgresql://a:b@h1:1,h2:2/db"),
        ]
    ),
    st.builds(ipaddress.ip_address, st.just("fe80::1%eth0")),
    st.sampled_from([*Mood, *Level, *Colour, *Rights, *Bits, Rights.READ | Rights.WRITE, Rights(0), Bits(7)]),
)


@st.composite
def scalars(draw: st.DrawFn) -> Any:
    """One of the kinds without parts. (By name, as hypothesis warns of strategies with very long texts.)"""
    return draw(_scalars)


_hashables = st.recursive(
    scalars(),
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Slotted, inner),
    ),
    max_leaves=4,
)


@st.composite
def hashables(draw: st.DrawFn) -> Any:
    """One of the kinds that may be a key."""
    return draw(_hashables)


def _crate(label: Any, count: Any) -> Crate:
    crate = Crate(label)
    crate.count = count
    return crate


def _loose(a: Any, more: dict[str, Any], hidden: Any) -> Loose:
    loose = Loose(a=a, **more)
    loose._hidden = hidden
    return loose


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.dictionaries(st.one_of(texts, hashables()), inner, max_size=4)
    factories = st.sampled_from([None, list, dict, int, str, set])
    return st.one_of(
        st.sampled_from([Decimal("sNaN"), Decimal("-NaN123")]),
        st.lists(inner, max_size=4),
        st.dictionaries(texts, inner, max_size=4),
        pairs,
        st.sets(hashables(), max_size=4),
        st.tuples(inner, inner),
        st.builds(deque, st.lists(inner, max_size=3), st.one_of(st.none(), st.integers(3, 9))),
        st.builds(defaultdict, factories, pairs),
        st.builds(OrderedDict, pairs),
        st.dictionaries(hashables(), st.integers(), max_size=3).map(Counter),
        st.binary(max_size=5).map(bytearray),
        st.builds(Node, name=st.text(max_size=3), inner=inner),
        st.builds(Leaf, extra_field=inner),
        st.builds(Frozen, held=inner, Items=st.lists(inner, max_size=2)),
        st.builds(Frozen, held=inner),
        st.builds(_loose, inner, st.dictionaries(st.sampled_from(["b", "c"]), inner), inner),
        st.builds(Rooted, st.lists(inner, max_size=2)),
        st.builds(Pair, inner, inner),
        st.builds(_crate, inner, inner),
        st.builds(Slotted, inner),
        st.builds(
            Message,
            role=st.just("user"),
            content=st.text(max_size=9),
            metadata=st.dictionaries(st.text(), inner),
        ),
    )


values = st.recursive(hashables(), _containers, max_leaves=8)
"""Any value that the codec keeps."""

plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)
"""Any plain JSON data."""
