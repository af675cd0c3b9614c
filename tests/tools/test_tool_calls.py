"""A tool is called with what a model sends, and whatever happens is an answer to the model."""

import asyncio
import contextvars
import json
import threading
import time
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from jianmu import Tool, tool
from jianmu.errors import ConfigError, ToolArgumentError, ToolError
from jianmu.tools import Injected, ToolResult


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    title: str
    floor: int = 3


@tool
def book(
    room: str,
    nights: int = 1,
    when: datetime | None = None,
    colour: Colour = Colour.RED,
    mode: Literal["fast", "slow"] = "fast",
    tags: list[str] | None = None,
    place: Place | None = None,
    prices: dict[str, Decimal] | None = None,
) -> dict[str, Any]:
    """Book a room.

    It is kept for an hour.

    Args:
        room: Which one,
            by its name.
        nights (int): How long.

    Returns:
        What was booked.
    """
    return dict(locals())


def result_of(arguments: Any, called: Tool = book) -> dict[str, Any]:
    result = called.call(arguments)
    assert not result.is_error, result.content
    decoded: dict[str, Any] = json.loads(result.content)
    return decoded


def error_of(arguments: Any, called: Tool = book) -> str:
    result = called.call(arguments)
    assert result.is_error
    return result.content


def test_the_schema_comes_from_hints_and_docstring() -> None:
    assert book.name == "book"
    assert book.description == "Book a room.\n\nIt is kept for an hour."
    properties = book.input_schema["properties"]
    assert properties["room"] == {"type": "string", "description": "Which one, by its name."}
    assert properties["nights"] == {"type": "integer", "description": "How long.", "default": 1}
    assert book.input_schema["required"] == ["room"]
    assert book.input_schema["$defs"]["Place"]["properties"]["title"] == {"type": "string"}


def test_a_tool_can_still_be_called_as_the_function_it_is() -> None:
    assert book("a", nights=2)["nights"] == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"room": "a", "nights": "3"}', {"room": "a", "nights": 3}),
        ({"room": "a", "nights": 3.0}, {"nights": 3}),
        (
            {"room": "a", "nights": None, "mode": None, "place": None},
            {"nights": 1, "mode": "fast", "place": None},
        ),
        ({"room": 7}, {"room": "7"}),
        ({"room": "3"}, {"room": "3"}),
        ({"room": "a", "tags": '["x", "y"]'}, {"tags": ["x", "y"]}),
        ({"room": "a", "place": '{"title": "t", "floor": "4"}'}, {"place": {"title": "t", "floor": 4}}),
        ({"room": "a", "place": {"title": "t", "floor": None}}, {"place": {"title": "t", "floor": 3}}),
        ({"room": "a", "colour": "blue"}, {"colour": "blue"}),
        ({"room": "a", "prices": {"x": "0.10"}}, {"prices": {"x": "0.10"}}),
        ({"room": "a", "when": "2026-01-02T03:04:05"}, {"when": "2026-01-02T03:04:05"}),
    ],
)
def test_arguments_are_read_as_their_declared_types(arguments: Any, expected: dict[str, Any]) -> None:
    assert result_of(arguments).items() >= expected.items()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "room: is missing"),
        ("", "room: is missing"),
        (None, "room: is missing"),
        ({"room": None}, "room: is missing"),
        ({"room": "a", "nights": "three"}, "nights: must be an integer, not a string"),
        ({"room": "a", "nights": True}, "nights: must be an integer"),
        ({"room": "a", "nights": 1.5}, "nights: must be an integer"),
        ({"room": True}, "room: must be a string"),
        ({"room": ["a"]}, "room: must be a string, not an array"),
        ({"room": "a", "mode": "warp"}, 'mode: must be one of ["fast", "slow"]'),
        ({"room": "a", "place": {"floor": 2}}, "place.title: is missing"),
        ({"room": "a", "tags": [1, {}]}, "tags[1]: must be a string"),
        ({"room": "a", "when": "yesterday"}, "when"),
        ({"room": "a", "stars": 5}, "stars: no such argument"),
        ('{"room": ', "not valid JSON"),
        ("[1]", "must be a JSON object, not an array"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_wrong_is_named_to_the_model(arguments: Any, named: str) -> None:
    assert named in error_of(arguments)
    assert "book" in error_of(arguments)


def test_every_wrong_argument_is_named_at_once() -> None:
    text = error_of({"nights": "x", "mode": 3})
    assert "room" in text
    assert "nights" in text
    assert "mode" in text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(sorted(book.input_schema["properties"])), json_values)
    | json_values
    | st.text()
)
def test_no_argument_whatever_raises(arguments: Any) -> None:
    assert isinstance(book.call(arguments), ToolResult)


@given(st.text(), st.integers())
def test_right_arguments_are_never_changed(room: str, nights: int) -> None:
    assert book.validate({"room": room, "nights": nights}) == {"room": room, "nights": nights}
    assert book.validate(json.dumps({"room": room, "nights": nights})) == {"room": room, "nights": nights}


def test_the_functions_own_defaults_are_used() -> None:
    default = object()

    @tool
    def f(a: Annotated[int, Field(ge=1, le=3)] = 2, b: Any = default) -> str:
        return "same" if b is default else "other"

    assert f.call({}).content == "same"
    assert "default" not in f.input_schema["properties"]["b"]
    assert "a: must be at most 3" in error_of({"a": 4}, f)


def test_parameters_may_have_any_name() -> None:
    @tool
    def f(schema: str, copy: str, model_config: str, title: str = "t", _private: str = "p") -> str:
        return schema + copy + model_config + title + _private

    assert set(f.input_schema["properties"]) == {"schema", "copy", "model_config", "title", "_private"}
    assert f.call({"schema": "1", "copy": "2", "model_config": "3"}).content == "123tp"


def test_injected_arguments_are_unseen_and_unsettable() -> None:
    @tool
    def whose(thing: str, user: Annotated[str, Injected]) -> str:
        return f"{user}'s {thing}"

    assert list(whose.input_schema["properties"]) == ["thing"]
    mine = whose.bind(user="me")
    assert mine.call({"thing": "pen"}).content == "me's pen"
    assert "no such argument" in error_of({"thing": "pen", "user": "you"}, mine)
    assert "bind" in error_of({"thing": "pen"}, whose)
    with pytest.raises(ConfigError, match="nobody"):
        whose.bind(nobody=1)


def test_a_method_can_be_a_tool() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @tool
        def buy(self, thing: str) -> str:
            """Buy."""
            return f"{thing} from {self.name}"

    mine, other = Shop("mine"), Shop("other")
    assert list(mine.buy.input_schema["properties"]) == ["thing"]
    assert mine.buy.call({"thing": "tea"}).content == "tea from mine"
    assert other.buy.call({"thing": "tea"}).content == "tea from other"
    assert mine.buy("tea") == "tea from mine"
    assert "no such argument" in error_of({"thing": "tea", "self": "x"}, mine.buy)


def test_parameters_a_model_cannot_give_are_refused_when_defined() -> None:
    with pytest.raises(ConfigError, match="rest"):

        @tool
        def f(*rest: int) -> None: ...

    with pytest.raises(ConfigError, match="more"):

        @tool
        def g(**more: int) -> None: ...


def test_a_failing_tool_is_an_error_for_the_model() -> None:
    @tool
    def fails(how: str) -> str:
        raise {"tool": ToolError("no such city: try Paris"), "other": RuntimeError("boom")}[how]

    assert fails.call({"how": "tool"}) == ToolResult("Error: no such city: try Paris", True, "ToolError")
    assert fails.call({"how": "other"}) == ToolResult("Error: RuntimeError: boom", True, "RuntimeError")


def test_a_tool_can_fail_with_a_text_of_its_own() -> None:
    class Closed(Tool):
        name = "closed"
        max_output = 60

        def execute(self, **arguments: Any) -> ToolResult:
            return ToolResult("closed today" * 20, is_error=True)

    result = Closed().call()
    assert result.is_error
    assert len(result.content) <= 60


async def test_async_and_sync_tools_give_the_same_both_ways() -> None:
    @tool
    async def a(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    @tool
    def b(x: int) -> int:
        return x + 1

    for each in (a, b):
        assert (await each.acall({"x": "1"})).content == "2"
        assert (await asyncio.to_thread(each.call, {"x": 1})).content == "2"
        assert await asyncio.to_thread(each.run, x=1) == "2"
    assert "await" in a.call({"x": 1}).content  # inside a running loop: at once, no deadlock


def test_a_sync_tool_that_takes_too_long_is_answered_in_time() -> None:
    stop = threading.Event()

    @tool(timeout=0.05)
    def slow() -> str:
        stop.wait(30)
        return "late"

    try:
        started = time.monotonic()
        assert "longer than its limit of 0.05 s" in error_of({}, slow)
        assert "longer than its limit" in asyncio.run(slow.acall({})).content
        assert time.monotonic() - started < 10
    finally:
        stop.set()


async def test_an_async_tool_that_takes_too_long_is_cancelled() -> None:
    cancelled = asyncio.Event()

    @tool(timeout=0.01)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "never"

    result = await slow.acall({})
    assert result.error_type == "ToolTimeoutError"
    assert cancelled.is_set()


async def test_a_tools_own_timeout_is_not_taken_for_its_limit() -> None:
    @tool(timeout=30)
    async def fails() -> str:
        raise TimeoutError("the server did not answer")

    assert (await fails.acall({})).content == "Error: TimeoutError: the server did not answer"


async def test_cancelling_a_call_cancels_the_tool() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def waits() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    task = asyncio.create_task(waits.acall({}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_context_variables_reach_a_sync_tool_on_its_thread() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    @tool(timeout=10)
    def asks() -> str:
        return who.get()

    who.set("me")
    assert (await asks.acall({})).content == "me"
    assert asks.call({}).content == "me"


@pytest.mark.parametrize("size", [0, 79, 80, 81, 100_000])
def test_a_long_result_is_cut_with_a_note(size: int) -> None:
    @tool(max_output=80)
    def long() -> str:
        return "x" * size

    content = long.call({}).content
    assert len(content) <= 80
    if size <= 80:
        assert content == "x" * size
    else:
        assert f"[cut: {size} characters, the first " in content


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "(no output)"),
        ("汉字", "汉字"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        (Place(title="t"), '{"title":"t","floor":3}'),
        (b"\x00\xff", "(2 bytes of binary output)"),
        (float("nan"), "NaN"),
        (3, "3"),
    ],
)
def test_results_become_text(value: Any, text: str) -> None:
    @tool
    def gives() -> Any:
        return value

    assert gives.call({}).content == text


def test_a_copy_can_be_changed_without_the_original() -> None:
    other = book.with_changes(name="other", requires_approval=True)
    assert (book.name, other.name, book.requires_approval) == ("book", "other", False)
    with pytest.raises(AttributeError, match="nmae"):
        book.with_changes(nmae="x")


def test_validate_raises_for_callers_who_want_to_know() -> None:
    with pytest.raises(ToolArgumentError, match="room"):
        book.validate({})


def test_reST_docstrings_are_read_too() -> None:
    @tool
    def f(a: str, b: int = 1) -> str:
        """Do it.

        :param a: the first
        :param int b: the second
        :returns: nothing
        """
        return a

    assert f.description == "Do it."
    assert f.input_schema["properties"]["a"]["description"] == "the first"
    assert f.input_schema["properties"]["b"]["description"] == "the second"
