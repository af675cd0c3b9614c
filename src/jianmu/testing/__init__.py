"""Contract suites and fakes for users and third-party back ends. The contract suites need pytest."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jianmu.testing.checkpointer_contract import CheckpointerContract as CheckpointerContract
    from jianmu.testing.checkpointer_endurance import CheckpointerEndurance as CheckpointerEndurance
    from jianmu.testing.long_term_contract import LongTermMemoryContract as LongTermMemoryContract
    from jianmu.testing.provider_server import Fault as Fault
    from jianmu.testing.provider_server import ProviderServer as ProviderServer
    from jianmu.testing.provider_wire import ProviderAnswer as ProviderAnswer
    from jianmu.testing.provider_wire import ProviderRequest as ProviderRequest
    from jianmu.testing.scripted_model import ScriptedChatModel as ScriptedChatModel

_HOMES = {
    "CheckpointerContract": "jianmu.testing.checkpointer_contract",
    "CheckpointerEndurance": "jianmu.testing.checkpointer_endurance",
    "Fault": "jianmu.testing.provider_server",
    "LongTermMemoryContract": "jianmu.testing.long_term_contract",
    "ProviderAnswer": "jianmu.testing.provider_wire",
    "ProviderRequest": "jianmu.testing.provider_wire",
    "ProviderServer": "jianmu.testing.provider_server",
    "ScriptedChatModel": "jianmu.testing.scripted_model",
}

_REWRITTEN = (
    "jianmu.testing.checkpointer",
    "jianmu.testing.checkpointer_endurance",
    "jianmu.testing.long_term_contract",
)
"""Where assertions are, which pytest explains when they fail."""

__all__ = [
    "CheckpointerContract",
    "CheckpointerEndurance",
    "Fault",
    "LongTermMemoryContract",
    "ProviderAnswer",
    "ProviderRequest",
    "ProviderServer",
    "ScriptedChatModel",
]


if not TYPE_CHECKING:  # a checker would take any name at all for a part of the module

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            if _HOMES[name].startswith(_REWRITTEN):
                import pytest  # the suites need it, the chat model and the server do not

                pytest.register_assert_rewrite(*(home for home in _REWRITTEN if home not in sys.modules))
            value = getattr(import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
