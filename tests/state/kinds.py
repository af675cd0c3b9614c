"""A schema with a field of every kind, and a value for each; imported by both sides of a process border."""

from __future__ import annotations

import enum
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, PrivateAttr

from jianmu import Message


class Plan(BaseModel):
    """A model with an enum inside."""

    class Mood(enum.Enum):
        CALM = "calm"
        WILD = "wild"

    mood: Mood = Mood.CALM


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.StrEnum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Base(BaseModel):
    a: int = 1


class Sub(Base):
    b: int = 2


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1
    _note: str = PrivateAttr(default="")


class Point(NamedTuple):
    x: int
    y: float


@dataclass
class Trip:
    start: str
    legs: list[tuple[str, int]]
    total: int = field(init=False, default=0)


class Everything(BaseModel):
    mood: Plan.Mood = Plan.Mood.WILD
    plan: Plan = Plan()
    level: Level = Level.HIGH
    colour: Colour = Colour.RED
    rights: Rights = Rights.READ | Rights.WRITE
    names: set[str] = {"a", "b"}
    fixed: frozenset[int] = frozenset({1, 2})
    when: datetime = datetime(2026, 12, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    zoned: datetime = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    naive: datetime = datetime(2026, 1, 2, 3, 4, 5, 6)
    day: date = date(2026, 2, 28)
    hour: time = time(1, 2, 3)
    wait: timedelta = timedelta(days=-1, microseconds=7)
    price: Decimal = Decimal("0.10")
    blob: bytes = b"\x00\xff"
    path: Path = Path("/tmp/建木")
    uid: UUID = UUID(int=7)
    pair: tuple[int, str] = (1, "a")
    by_number: dict[int, str] = {1: "a"}
    base: Base = Sub(a=5, b=7)
    bases: list[Base] = [Base(a=1), Sub(a=2, b=3)]
    opened: Open = Open(a=2, more={"x": (1, 2)})  # type: ignore[call-arg]
    huge: int = 2**80
    low: int = -(2**63) - 1
    nan: float = float("nan")
    inf: float = float("inf")
    minus: float = float("-inf")
    zero: float = -0.0
    lone: str = "a\ud800b"
    lines: str = "a\u2028b\u2029c\u0085d\x00e\x0bf\r\ng"
    trip: Trip = Trip("x", [("y", 1)])
    point: Point = Point(1, 2.0)
    anything: Any = None
    messages: Annotated[list[Message], operator.add] = []


def everything() -> Everything:
    value = Everything()
    value.trip.total = 9
    value.opened._note = "private"
    value.anything = {
        "kinds": [
            {1, 2},
            frozenset({"x"}),
            (1, (2, [3])),
            {(1, 2): "tuple key", 3: "int key", None: 0, 1.5: 0, date(2026, 1, 1): 0, Level.LOW: 0},
            {"~": "a key like the tag"},
            bytearray(b"\xff\x00"),
            1 + 2j,
            range(3, 9, 2),
            Fraction(1, 3),
            deque([1, 2], maxlen=5),
            defaultdict(list, {"k": [1]}),
            OrderedDict([("z", 1), ("a", 2)]),
            Counter("hello"),
            PurePosixPath("a/b"),
            Decimal("1E+400"),
            float("nan"),
            float("-inf"),
            -0.0,
            2**80,
            "\udfff",
            {"\ud800": 1},
            timedelta(1),
            time(1, tzinfo=ZoneInfo("Asia/Tokyo"), fold=1),
            datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=9), "JST")),
            Sub(a=1, b=2),
            Plan.Mood.CALM,
            Trip("a", []),
            True,
            1,
            1.0,
        ],
    }
    value.messages = [
        Message(
            role="user", content="你好\u2028", time=datetime(2026, 1, 1, tzinfo=ZoneInfo("Asia/Shanghai"))
        ),
        Message(role="assistant", metadata={"k": [1, {"x": (1,)}]}),
    ]
    return value


def image(value: object) -> str:
    """A text of value and types all the way down; equal images mean equal values of equal types.

    A set is listed in sorted order; a read-only container shows as the builtin it stands for.
    """
    if isinstance(value, BaseModel):
        inner = {
            **value.__dict__,
            **(value.__pydantic_extra__ or {}),
            **(value.__pydantic_private__ or {}),
            "set": set(value.__pydantic_fields_set__),
        }
        return f"{type(value).__qualname__}{image(inner)}"
    if isinstance(value, Trip):
        return f"Trip{image(asdict(value))}"
    kind = type(value).__name__.replace("Frozen", "").replace("Copying", "").lower()
    if isinstance(value, dict):
        pairs = ", ".join(f"{image(key)}: {image(item)}" for key, item in value.items())
        return f"{kind}({pairs}; {getattr(value, 'default_factory', '')})"
    if isinstance(value, set | frozenset):
        return f"{kind}({', '.join(sorted(map(image, value)))})"
    if isinstance(value, list | tuple | deque):
        return f"{kind}({', '.join(map(image, value))}; {getattr(value, 'maxlen', '')})"
    if isinstance(value, datetime | time):
        return f"{value!r}, fold={value.fold}, zone={type(value.tzinfo).__name__}"
    return f"{kind}:{value!a}"
