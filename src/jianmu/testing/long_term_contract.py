"""What every long-term memory must do, as a pytest class that a back end's own tests inherit.

A third party's back end passes it in five lines::

    from jianmu.testing.long_term_contract import LongTermMemoryContract

    class TestMyMemory(LongTermMemoryContract):
        def make(self, folder, *, clock):
            return MyMemory(folder / "memory.db")

What a back end offers beyond `record` and `retrieve` it names in its `capabilities`
(`jianmu.memory.long_term.capabilities.CAPABILITIES`); a test of one that it does not name proves instead that
asking for it is a `CapabilityError` that says its name.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("jianmu.testing.long_term")

from jianmu.testing.long_term.finding import Finding  # noqa: E402 - after the line above
from jianmu.testing.long_term.keeping import Keeping  # noqa: E402
from jianmu.testing.long_term.namespaces import Namespaces  # noqa: E402
from jianmu.testing.long_term.offers import Offers  # noqa: E402
from jianmu.testing.long_term.refining import Refining  # noqa: E402
from jianmu.testing.long_term.shapes import Shapes  # noqa: E402
from jianmu.testing.long_term.support import FakeClock  # noqa: E402
from jianmu.testing.long_term.together import Together  # noqa: E402

__all__ = ["FakeClock", "LongTermMemoryContract"]


class LongTermMemoryContract(Shapes, Keeping, Namespaces, Finding, Refining, Offers, Together):
    """Inherit, override `make`, and pytest proves the rest; see `Support` for what else can be set."""
