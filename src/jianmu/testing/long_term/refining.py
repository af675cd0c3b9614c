"""Refining: filters, times and explanations, where a back end names them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from jianmu.testing.long_term.support import FakeClock, Support

__all__ = ["Refining"]

_TEAS = {
    "zh": {"lang": "zh", "year": 2019, "tags": ["green"], "shop": {"city": "杭州"}},
    "en": {"lang": "en", "year": 2024, "tags": [], "shop": {"city": "London"}},
    "fr": {"lang": "fr"},
}


class Refining(Support):
    """Refining: filters, times and explanations, where a back end names them."""

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"lang": "zh"}, {"zh"}),
            ({"lang": "zh", "year": 2024}, set()),
            ({"lang": {"eq": "en"}}, {"en"}),
            ({"lang": {"ne": "en"}}, {"zh", "fr"}),
            ({"year": {"gt": 2019}}, {"en"}),
            ({"year": {"gte": 2019, "lt": 2024}}, {"zh"}),
            ({"year": {"lte": 2024}}, {"zh", "en"}),
            ({"lang": {"in": ["zh", "fr"]}}, {"zh", "fr"}),
            ({"year": {"exists": True}}, {"zh", "en"}),
            ({"year": {"exists": False}}, {"fr"}),
            ({"or": [{"lang": "fr"}, {"year": 2019}]}, {"fr", "zh"}),
            ({"and": [{"year": {"gt": 2000}}, {"lang": "en"}]}, {"en"}),
            ({"not": {"lang": "en"}}, {"zh", "fr"}),
            ({"shop.city": "杭州"}, {"zh"}),
            ({}, {"zh", "en", "fr"}),
        ],
        ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else str(value),
    )
    def test_filters_choose_by_metadata(
        self, memory: Any, filters: dict[str, Any], expected: set[str]
    ) -> None:
        """Equality, order, membership, presence, and/or/not; a missing field is unequal to everything."""
        self.needs(memory, "search.filters")
        for key, metadata in _TEAS.items():
            memory.record(f"tea in {key}", key=key, metadata=metadata)
        found = memory.retrieve("tea", filters=filters, limit=10)
        assert {hit["metadata"]["lang"] for hit in found} == expected

    def test_a_filter_never_makes_a_search_return_too_few(self, memory: Any) -> None:
        """The limit is filled from all that pass, however deep they rank."""
        self.needs(memory, "search.filters")
        for number in range(60):
            rare = number % 12 == 0
            text = (
                "tea somewhere far below in a long text about other things" if rare else f"tea tea {number}"
            )
            memory.record(f"{text} {number}", key=f"k{number}", metadata={"rare": rare})
        assert len(memory.retrieve("tea", filters={"rare": True}, limit=5)) == 5

    @pytest.mark.parametrize("wrong", [{"a": {"like": "x"}}, {"or": 3}, "lang = zh"], ids=str)
    def test_a_wrong_filter_is_refused(self, memory: Any, wrong: Any) -> None:
        """Never taken for one that lets everything through."""
        self.needs(memory, "search.filters")
        memory.record("tea", key="k")
        with pytest.raises(ValueError, match=r"filter|operator"):
            memory.retrieve("tea", filters=wrong)

    def test_times_choose_a_half_open_span(self, memory: Any) -> None:
        """Since <= time < until; zones are converted, a time without one is UTC."""
        self.needs(memory, "search.time")
        start = datetime(2025, 7, 25, 2, tzinfo=UTC)
        for day in range(4):
            memory.record(f"tea on day {day}", key=f"k{day}", time=start + timedelta(days=day))
        for since, until, expected in [
            (datetime(2025, 7, 25, tzinfo=UTC), datetime(2025, 7, 26, tzinfo=UTC), [0]),
            (datetime(2025, 7, 25), datetime(2025, 7, 26), [0]),
            (start, start + timedelta(days=1), [0]),
            (start.astimezone(timezone(timedelta(hours=9))), None, [0, 1, 2, 3]),
            (None, start + timedelta(days=2), [0, 1]),
        ]:
            found = self.contents(memory.retrieve("tea", since=since, until=until, limit=10))
            assert sorted(found) == [f"tea on day {day}" for day in expected]

    def test_as_of_gives_what_was_true_then(self, memory: Any) -> None:
        """A superseded fact comes back for its own time, and a later one is not yet known."""
        self.needs(memory, "search.time")
        self.needs(memory, "read.history")
        memory.record("lives in Berlin", key="home", time=datetime(2020, 1, 1, tzinfo=UTC))
        memory.record("moved to Lisbon", key="home", time=datetime(2024, 1, 1, tzinfo=UTC))
        then = memory.retrieve("Berlin Lisbon", as_of=datetime(2022, 1, 1, tzinfo=UTC))
        assert self.contents(then) == ["lives in Berlin"]
        assert self.contents(memory.retrieve("Berlin Lisbon")) == ["moved to Lisbon"]
        assert memory.retrieve("Berlin Lisbon", as_of=datetime(2019, 1, 1, tzinfo=UTC)) == []

    def test_an_expired_memory_does_not_count(self, memory: Any, clock: FakeClock) -> None:
        """Expiry and filters together; what is left fills the limit."""
        self.needs(memory, "write.ttl")
        for number in range(6):
            memory.record(f"tea {number}", key=f"k{number}", ttl=60 if number < 4 else None)
        clock.advance(61)
        assert sorted(self.contents(memory.retrieve("tea", limit=2))) == ["tea 4", "tea 5"]

    def test_a_search_can_explain_itself(self, memory: Any) -> None:
        """Each hit says why it ranks where it does."""
        self.needs(memory, "search.explain")
        memory.record("green tea", key="k")
        (hit,) = memory.retrieve("tea", explain=True)
        assert hit["explain"]
        assert "explain" not in memory.retrieve("tea")[0]
