"""Contract suites and fakes for users and third-party back ends. Needs pytest."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jianmu.testing.checkpointer_contract import CheckpointerContract as CheckpointerContract
    from jianmu.testing.checkpointer_endurance import CheckpointerEndurance as CheckpointerEndurance

_HOMES = {
    "CheckpointerContract": "jianmu.testing.checkpointer_contract",
    "CheckpointerEndurance": "jianmu.testing.checkpointer_endurance",
}

_REWRITTEN = ("jianmu.testing.checkpointer", "jianmu.testing.checkpointer_endurance")
"""Where assertions are, which pytest explains when they fail."""

__all__ = ["CheckpointerContract", "CheckpointerEndurance"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        pytest.register_assert_rewrite(*(home for home in _REWRITTEN if home not in sys.modules))
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
