"""Reports on what a search finds and misses, on the words alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jianmu.memory import SimpleStore, SqliteLongTermMemory

STORES: dict[str, Callable[[Path], Any]] = {
    "simple": lambda folder: SimpleStore(folder / "store.json"),
    "sqlite": lambda folder: SqliteLongTermMemory(folder / "memory.db", embedder=None),
}


@pytest.fixture(params=sorted(STORES))
def search(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[list[str], str], list[int]]:
    """Return where the hits for a query stand among texts, best first, from 1."""

    def find(texts: list[str], query: str) -> list[int]:
        store = STORES[request.param](tmp_path)
        for number, text in enumerate(texts, start=1):
            store.record(text, key=f"k{number}")
        found = store.retrieve(query, limit=10)
        assert all(hit["score"] > 0 for hit in found)
        return [texts.index(hit["content"]) + 1 for hit in found]

    return find


Search = Callable[[list[str], str], list[int]]

NO_SPACES = [
    "今日は成語しりとりをした",
    "오늘 끝말잇기 게임을 했다",
    "我们最近配置的rerank精排是什么模型",
    "the cat sat",
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [("しりとり", [1]), ("끝말잇기", [2]), ("精排", [3]), ("rerank", [3]), ("猫", [])],
)
def test_text_without_spaces(search: Search, query: str, expected: list[int]) -> None:
    """T9.37."""
    assert search(NO_SPACES, query) == expected


def test_tiny_stores(search: Search) -> None:
    """T9.39: any match beats no match."""
    assert search(["It is quite windy in London", "Hello there good man"], "windy London") == [1]


def test_a_store_of_one(search: Search) -> None:
    """T9.39."""
    assert search(["It is quite windy in London"], "windy") == [1]


def test_a_rare_word_beats_one_that_all_have(search: Search) -> None:
    """T9.39."""
    assert search(["tea today", "tea and zebra", "tea later"], "tea zebra")[0] == 2


CODES = [
    "call getUserById in auth.py",
    "set OPENAI_API_KEY",
    "openai-api-key rotated",
    "python 3.10 vs 3.11",
    "error E1234",
    "GitHub login",
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("user by id", [1]),
        ("getuserbyid", [1]),
        ("openai_api_key", [2, 3]),
        ("3.10", [4]),
        ("E1234", [5]),
        ("github", [6]),
    ],
)
def test_identifiers(search: Search, query: str, expected: list[int]) -> None:
    """T9.41: the whole and the parts."""
    found = search(CODES, query)
    assert sorted(found[: len(expected)]) == expected
    if query in ("E1234", "3.10"):
        assert found == expected


@pytest.mark.parametrize("query", ["timestamp", "bug", "serialization"])
def test_singular_and_plural(search: Search, query: str) -> None:
    """T9.43."""
    assert search(["Always serialize timestamps in UTC to avoid bugs"], query) == [1]


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["add a user"], "added"),
        (["daily news", "new shoes"], "news"),
        (["pipe organ", "organization chart"], "organ"),
    ],
)
def test_the_exact_word_stands_above_its_stem(search: Search, texts: list[str], query: str) -> None:
    """T9.43."""
    assert search(texts, query)[0] == 1


def test_a_negation_removes_and_buries_nothing(search: Search) -> None:
    """T9.45."""
    food = ["User loves Chinese food", "User hates Chinese food"]
    assert sorted(search(food, "Chinese food")) == [1, 2]


def test_a_reminder_buries_nothing(search: Search) -> None:
    """T9.45."""
    texts = ["Use the async runtime", "Do not forget to configure the async runtime"]
    assert sorted(search(texts, "async runtime")) == [1, 2]
