"""Finding: by words, in any script, whatever the query."""

from __future__ import annotations

from typing import Any

import pytest

from jianmu.errors import MemoryInputError
from jianmu.testing.long_term.samples import HOSTILE_QUERIES
from jianmu.testing.long_term.support import Support

__all__ = ["Finding"]


class Finding(Support):
    """Finding: by words, in any script, whatever the query."""

    def test_the_limit_is_kept(self, memory: Any) -> None:
        """Five by default; zero is none."""
        for number in range(12):
            memory.record(f"tea number {number}", key=f"k{number}")
        assert len(memory.retrieve("tea")) == 5
        assert len(memory.retrieve("tea", limit=7)) == 7
        assert memory.retrieve("tea", limit=0) == []
        for wrong in (-1, 1.5, "2", True):
            with pytest.raises(MemoryInputError, match="limit must be an int of 0 or more"):
                memory.retrieve("tea", limit=wrong)
            if "read.list" in memory.capabilities:
                with pytest.raises(MemoryInputError, match="limit must be an int of 0 or more"):
                    memory.list(limit=wrong)

    def test_hits_are_best_first(self, memory: Any) -> None:
        """Scores never rise down the list."""
        for number, text in enumerate(["green tea with milk", "black tea", "green door", "a cat"]):
            memory.record(text, key=f"k{number}")
        found = memory.retrieve("green tea")
        assert found[0]["content"] == "green tea with milk"
        scores = [hit["score"] for hit in found if hit["score"] is not None]
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("query", HOSTILE_QUERIES, ids=range(len(HOSTILE_QUERIES)))
    def test_any_query_is_plain_text(self, memory: Any, query: str) -> None:
        """No query syntax, no exception."""
        memory.record("a plain memory", key="k")
        assert isinstance(memory.retrieve(query), list)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("しりとり", "d1"),
            ("끝말잇기", "d2"),
            ("精排", "d3"),
            ("rerank", "d3"),
            ("ＲＥＲＡＮＫ", "d3"),
            ("猫", None),
        ],
    )
    def test_scripts_without_spaces_are_searched(self, memory: Any, query: str, expected: str | None) -> None:
        """Chinese, Japanese, Korean, and a Latin word between them."""
        self.needs(memory, "search.words")
        texts = {
            "d1": "今日は成語しりとりをした",
            "d2": "오늘 끝말잇기 게임을 했다",
            "d3": "我们最近配置的rerank精排是什么模型",
            "d4": "the cat sat",
        }
        for key, text in texts.items():
            memory.record(text, key=key)
        found = self.contents(memory.retrieve(query, limit=1))
        if expected:
            assert found == [texts[expected]]
        elif not self.has(memory, "search.semantic"):
            assert found == []

    @pytest.mark.parametrize(
        ("texts", "query", "first"),
        [
            (["It is quite windy in London", "Hello there good man"], "windy London", 0),
            (["It is quite windy in London"], "windy", 0),
            (["tea one", "tea two rare", "tea three"], "tea rare", 1),
            (["Always serialize timestamps in UTC to avoid bugs"], "timestamp", 0),
            (["Always serialize timestamps in UTC to avoid bugs"], "bug", 0),
            (["Always serialize timestamps in UTC to avoid bugs"], "serialization", 0),
            (["add a user"], "added", 0),
            (["new shoes", "daily news"], "news", 1),
            (["organization chart", "pipe organ"], "organ", 1),
            (["battery 1000 full", "battery 100% full"], "100%", 1),
            (["the café is closed", "the car is closed"], "CAFE", 0),
        ],
    )
    def test_a_word_finds_its_text_first(self, memory: Any, texts: list[str], query: str, first: int) -> None:
        """Tiny stores, singular and plural, exact word above stem."""
        self.needs(memory, "search.words")
        for number, text in enumerate(texts):
            memory.record(text, key=f"k{number}")
        found = memory.retrieve(query)
        assert found, f"{query!r} found nothing"
        assert found[0]["content"] == texts[first]
        assert all(hit["score"] is None or hit["score"] > 0 for hit in found)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("user by id", {1}),
            ("getuserbyid", {1}),
            ("openai_api_key", {2, 3}),
            ("3.10", {4}),
            ("E1234", {5}),
            ("github", {6}),
        ],
    )
    def test_identifiers_are_found_whole_and_in_parts(
        self, memory: Any, query: str, expected: set[int]
    ) -> None:
        """Camel case, snake case, kebab case, versions, codes."""
        self.needs(memory, "search.words")
        texts = {
            1: "call getUserById in auth.py",
            2: "set OPENAI_API_KEY",
            3: "openai-api-key rotated",
            4: "python 3.10 vs 3.11",
            5: "error E1234",
            6: "GitHub login",
        }
        for key, text in texts.items():
            memory.record(text, key=str(key))
        found = self.contents(memory.retrieve(query, limit=len(expected)))
        assert set(found) == {texts[key] for key in expected}

    def test_a_contradiction_loses_no_fact(self, memory: Any) -> None:
        """A negation is no reason to drop or bury anything."""
        for number, text in enumerate(["User loves Chinese food", "User hates Chinese food"]):
            memory.record(text, key=f"k{number}")
        assert self.kept(memory, "User hates Chinese food", "Chinese food")
        memory.record("Use the async runtime", key="use")
        memory.record("Do not forget to configure the async runtime", key="configure")
        assert self.kept(memory, "Use the async runtime", "async runtime")

    def test_results_never_repeat_a_text(self, memory: Any) -> None:
        """The same words under several keys fill one place."""
        for number in range(5):
            memory.record("likes tea", key=f"k{number}")
        memory.record("likes tea and cake", key="other")
        found = self.contents(memory.retrieve("likes tea", limit=3))
        assert len(found) == len(set(found))
