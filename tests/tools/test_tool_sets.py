"""Tool sets: many tools as one, called by names that a provider takes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu import Tool, ToolSet, tool
from jianmu.errors import ConfigError
from jianmu.tools.names import legal_name


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(read_only=True)
def look(where: str) -> str:
    """Look."""
    return f"nothing in {where}"


both = ToolSet([add, look])


def test_sets_are_combined_filtered_prefixed_and_renamed() -> None:
    assert (both + ToolSet([add.with_changes(name="plus")])).names == ["add", "look", "plus"]
    assert both.filter(["look"]).names == ["look"]
    assert both.filter(lambda one: not one.read_only).names == ["add"]
    assert both.prefix("my_").names == ["my_add", "my_look"]
    assert both.rename({"add": "plus"}).names == ["plus", "look"]
    assert [one.requires_approval for one in both.require_approval(["add"])] == [True, False]
    assert all(one.requires_approval for one in both.require_approval())
    assert both.names == ["add", "look"]
    assert not any(one.requires_approval for one in both)


def test_a_renamed_tool_does_what_it_did() -> None:
    assert both.prefix("my_").call("my_add", '{"a": 1, "b": "2"}').content == "3"


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="add"):
        ToolSet([both, add])


@pytest.mark.parametrize("change", [lambda s: s.filter(["ad"]), lambda s: s.rename({"ad": "x"})])
def test_a_misspelt_name_is_refused(change: object) -> None:
    with pytest.raises(ConfigError, match="ad"):
        change(both)  # type: ignore[operator]


async def test_an_unknown_tool_is_an_error_that_lists_the_known() -> None:
    for result in (both.call("ad", {}), await both.acall("ad", {})):
        assert result.is_error
        assert "add, look" in result.content


@pytest.mark.parametrize(
    "name", ["查询天气", "a.b", "a b", "", "3d", "x" * 65, "-a", "_ok", "é", "a/b", "CON", "😀"]
)
def test_any_name_is_made_legal_and_mapped_back(name: str) -> None:
    if not name:
        with pytest.raises(ConfigError):
            ToolSet([add.with_changes(name=name)])
        return
    tools = ToolSet([add.with_changes(name=name), look])
    wire = tools.to_openai()[0]["function"]["name"]
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", wire)
    assert tools[wire].name == tools[name].name == name
    assert tools.call(wire, {"a": 1, "b": 1}).content == "2"


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=20))
def test_different_names_stay_different(names: list[str]) -> None:
    legal = {legal_name(name) for name in names}
    assert len(legal) == len(names)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in legal)
    assert {legal_name(name) for name in legal} == legal


def test_a_set_is_a_collection() -> None:
    assert len(both) == 2
    assert "add" in both
    assert "sub" not in both
    assert list(both) == [add, look]
    with pytest.raises(KeyError, match="add, look"):
        both["sub"]


def test_a_tool_without_run_says_what_to_write() -> None:
    class Empty(Tool):
        name = "empty"

    assert "must define run" in Empty().call().content
