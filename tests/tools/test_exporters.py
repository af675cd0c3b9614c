"""What the exporters build is accepted by the providers' own models."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from anthropic.types import ToolParam
from google.genai import types as gemini
from mcp.types import Tool as McpTool
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel, Field, TypeAdapter

from jianmu import ToolSet, tool
from jianmu.memory import SimpleStore, create_memory_tools
from jianmu.tools import Tool


class Item(BaseModel):
    """One thing."""

    title: str
    price: Annotated[float, Field(ge=0)] = 1.0
    tags: list[str] = []


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


@tool(read_only=True)
def order(
    items: list[Item],
    mode: Literal["fast", "slow"] = "fast",
    when: datetime | None = None,
    extra: dict[str, Any] | None = None,
    tree: Tree | None = None,
    anything: Any = None,
    pair: tuple[int, str] | None = None,
) -> str:
    """Order things.

    Args:
        items: Which.
        extra: Whatever else.
    """
    return f"{len(items)} {mode} {extra}"


@tool(name="查询.天气")
def weather(city: str) -> str:
    """天气。"""
    return city


@tool
def nothing() -> str:
    """Take nothing."""
    return "done"


@pytest.fixture
def tools(tmp_path: Any) -> ToolSet:
    return ToolSet([order, weather, nothing, *create_memory_tools(("n",), SimpleStore(tmp_path / "s.json"))])


def test_openai_accepts_them(tools: ToolSet) -> None:
    adapter = TypeAdapter(list[ChatCompletionToolParam])
    for strict in (False, True):
        exported = tools.to_openai(strict=strict)
        assert adapter.validate_python(exported) == exported
        assert all(one["function"].get("strict", False) is strict for one in exported)
        json.dumps(exported)


def test_anthropic_accepts_them(tools: ToolSet) -> None:
    exported = tools.to_anthropic()
    assert TypeAdapter(list[ToolParam]).validate_python(exported) == exported


def test_gemini_accepts_them(tools: ToolSet) -> None:
    (made,) = [gemini.Tool.model_validate(one) for one in tools.to_gemini()]
    assert made.function_declarations is not None
    assert [one.name for one in made.function_declarations] == [one["name"] for one in tools.to_anthropic()]
    config = gemini.GenerateContentConfig(tools=tools.to_gemini())
    assert config.tools
    assert ToolSet().to_gemini() == []


def test_mcp_accepts_them(tools: ToolSet) -> None:
    for exported in tools.to_mcp():
        made = McpTool.model_validate(exported)
        assert made.name == exported["name"]
        assert made.annotations is not None
    by_name = {one["name"]: one for one in tools.to_mcp()}
    assert by_name["memory_search"]["annotations"] == {"readOnlyHint": True}
    assert by_name["memory_add"]["annotations"] == {"readOnlyHint": False}


def objects_of(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects_of(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") in ("object", ["object", "null"]) else []
    return own + [found for value in schema.values() for found in objects_of(value)]


def test_strict_schemas_keep_the_rules_of_strict_mode(tools: ToolSet) -> None:
    for exported in tools.to_openai(strict=True):
        schema = exported["function"]["parameters"]
        found = objects_of(schema)
        assert found
        for each in found:
            assert each["additionalProperties"] is False
            assert sorted(each["required"]) == sorted(each["properties"])
        for word in ("default", "oneOf", "allOf", "prefixItems", "minLength"):
            assert f'"{word}"' not in json.dumps(schema)


def test_what_strict_mode_sends_is_what_the_tool_takes(tools: ToolSet) -> None:
    sent = {
        "items": [{"title": "pen", "price": None, "tags": None}],
        "mode": None,
        "when": None,
        "extra": '{"gift": true}',
        "tree": {"name": "a", "children": [{"name": "b", "children": None}]},
        "anything": None,
        "pair": None,
    }
    schema = order.to_openai(strict=True)["function"]["parameters"]
    assert set(sent) == set(schema["properties"])
    assert tools.call("order", json.dumps(sent)).content == "1 fast {'gift': True}"
    added = tools.call(
        "memory_add", '{"content": "likes tea", "metadata": "{\\"a\\": 1}", "key": null, "namespace": null}'
    )
    assert added.content.startswith("Stored (id: ")
    assert not tools.call("memory_search", '{"query": "tea", "k": null, "namespace": null}').is_error


def test_an_exported_name_leads_back_to_its_tool(tools: ToolSet) -> None:
    for form in (tools.to_anthropic(), tools.to_mcp(), [one["function"] for one in tools.to_openai()]):
        assert [tools[one["name"]].name for one in form] == tools.names
        assert tools.call(form[1]["name"], {"city": "杭州"}).content == "杭州"


def test_changing_an_export_changes_no_tool() -> None:
    order.to_anthropic()["input_schema"]["properties"].clear()
    order.to_openai(strict=True)["function"]["parameters"]["properties"].clear()
    assert "items" in order.input_schema["properties"]


def test_an_object_result_is_described_to_mcp() -> None:
    class Weather(Tool):
        name = "w"
        output_schema = {"type": "object", "properties": {"t": {"type": "number"}}}  # noqa: RUF012

    made = McpTool.model_validate(Weather().to_mcp())
    assert made.output_schema == {"type": "object", "properties": {"t": {"type": "number"}}}
