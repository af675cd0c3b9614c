"""What a schema says beyond types is kept to, or the value is refused."""

from __future__ import annotations

from typing import Any

import pytest

from jianmu.tools.coercion import Coercion, WrongValueError


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "a1"),
        ({"type": "number", "multipleOf": 0.1}, 0.3, 0.35),
        ({"type": "array", "uniqueItems": True}, [1, 2], [1, 1]),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 5}]}, 4, 6),
        (
            {
                "type": "object",
                "patternProperties": {"^x-": {"type": "integer"}},
                "additionalProperties": False,
            },
            {"x-a": 1},
            {"y": 1},
        ),
    ],
)
def test_a_keyword_of_the_schema_takes_what_it_allows_and_refuses_the_rest(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    coercion = Coercion(schema)
    assert coercion.to(good, schema, "a") == good
    with pytest.raises(WrongValueError):
        coercion.to(bad, schema, "a")
