"""What the engine promises beyond the contract of every long-term memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jianmu.errors import EmbedderError, EmbedderMismatchError, MemoryInputError, MemoryNotFoundError
from jianmu.memory.long_term.sqlite import SqliteLongTermMemory
from jianmu.retrieval import CallableEmbedder
from tests.long_term.embedders import hashed


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SqliteLongTermMemory]:
    with SqliteLongTermMemory(tmp_path / "memory.db", hashed()) as memory:
        yield memory


def contents(hits: list[Any]) -> list[str]:
    return [hit["content"] for hit in hits]


class Failing:
    """Fails from a chosen text on, or for every question."""

    id = "hashed"
    dimension = 64

    def __init__(self, word: str, *, questions: bool = False) -> None:
        self.word, self.questions, self.inner = word, questions, hashed()

    def embed_documents(self, texts: Any) -> Any:
        if any(self.word in text for text in texts):
            raise ConnectionError("no route")
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        if self.questions:
            raise ConnectionError("no route")
        return self.inner.embed_query(text)


def test_an_embedder_that_fails_stores_nothing(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", Failing("two")) as memory:
        with pytest.raises(EmbedderError, match="hashed"):
            memory.record_many([{"inputs": text} for text in ("tea one", "tea two", "tea three")])
        assert memory.list() == []
        memory.record("tea four")
        assert contents(memory.list()) == ["tea four"]


def test_a_dead_embedder_leaves_the_words_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", Failing("never", questions=True)) as memory:
        memory.record("green tea")
        with caplog.at_level(logging.WARNING, "jianmu"):
            assert contents(memory.retrieve("tea")) == ["green tea"]
        assert "by words alone" in caplog.text


@pytest.mark.parametrize("vector", [[float("nan")] * 4, [1.0] * 3])
def test_vectors_that_are_none_are_refused(tmp_path: Path, vector: list[float]) -> None:
    embedder = CallableEmbedder(lambda texts: [vector for _ in texts], id="bad", dimension=4)
    with SqliteLongTermMemory(tmp_path / "m.db", embedder) as memory:
        with pytest.raises(EmbedderError, match="bad"):
            memory.record("tea")
        assert memory.list() == []


def test_another_embedder_is_an_error_that_names_both_and_reindex_is_the_way(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with SqliteLongTermMemory(path, hashed(name="first")) as memory:
        memory.record_many([{"inputs": f"tea number {n}", "session": "s"} for n in range(300)])
    with pytest.raises(EmbedderMismatchError, match=r"first.*second.*reindex"):
        SqliteLongTermMemory(path, hashed(name="second"))
    with SqliteLongTermMemory(path, None) as memory:
        assert memory.reindex(hashed(32, "second"), progress=False) == 300
        assert contents(memory.retrieve("number 299", limit=1)) == ["tea number 299"]
    with SqliteLongTermMemory(path, hashed(32, "second")) as memory:
        assert contents(memory.retrieve("number 17", limit=1)) == ["tea number 17"]
        assert memory.record("tea number 17")["status"] == "duplicate"


def test_a_reindex_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    seen: list[int] = []
    inner = hashed(32, "second")

    def counting(texts: list[str]) -> Any:
        seen.append(len(texts))
        if sum(seen) == 300 and len(seen) == 3:
            raise ConnectionError("stopped")
        return inner.embed_documents(texts)

    embedder = CallableEmbedder(counting, id="second", dimension=32)
    with SqliteLongTermMemory(path, None) as memory:
        memory.record_many([{"inputs": f"tea number {n}"} for n in range(300)])
        with pytest.raises(EmbedderError):
            memory.reindex(embedder, progress=False)
        assert contents(memory.retrieve("number 42", limit=1)) == [
            "tea number 42"
        ]  # the old index still works
        done = sum(seen[:2])
        seen.clear()
        assert memory.reindex(embedder, progress=False) == 300
        assert sum(seen) == 300 - done


def test_filters_find_as_many_as_there_are(memory: SqliteLongTermMemory) -> None:
    memory.record_many(
        {"inputs": f"tea note {n}", "metadata": {"n": n, "rare": n % 100 == 7, "tag": ["a", "b"][n % 2]}}
        for n in range(900)
    )
    rare = memory.retrieve("tea note", limit=20, filters={"rare": True})
    assert sorted(hit["metadata"]["n"] for hit in rare) == [n for n in range(900) if n % 100 == 7]
    some = memory.retrieve(
        "tea", limit=50, filters={"n": {"gte": 10, "lt": 14}, "not": {"tag": {"in": ["b"]}}}
    )
    assert sorted(hit["metadata"]["n"] for hit in some) == [10, 12]
    either = memory.retrieve("tea", limit=50, filters={"or": [{"n": 3}, {"and": [{"n": 4}, {"tag": "a"}]}]})
    assert sorted(hit["metadata"]["n"] for hit in either) == [3, 4]
    assert memory.retrieve("tea", filters={"missing": {"exists": True}}) == []
    with pytest.raises(MemoryInputError, match="unknown operator"):
        memory.retrieve("tea", filters={"n": {"like": 1}})


def test_a_superseded_fact_is_found_as_of_its_time(memory: SqliteLongTermMemory) -> None:
    memory.record("lives in Paris", key="home", time="2023-01-01")
    memory.record("lives in London", key="home", time="2024-06-01")
    assert contents(memory.retrieve("lives in")) == ["lives in London"]
    assert contents(memory.retrieve("lives in", as_of="2023-07-01")) == ["lives in Paris"]
    assert memory.retrieve("lives in", as_of="2022-07-01") == []
    (hit,) = memory.retrieve("lives in")
    first, last = memory.history(hit["id"] or "")
    assert first["valid_from"] == datetime(2023, 1, 1, tzinfo=UTC)
    assert first["valid_to"] == last["valid_from"] == datetime(2024, 6, 1, tzinfo=UTC)
    assert last["valid_to"] is None


def test_time_filters_are_half_open_and_in_utc(memory: SqliteLongTermMemory) -> None:
    memory.record("tea", time=datetime(2025, 7, 25, 2, tzinfo=UTC))
    assert memory.retrieve("tea", since="2025-07-25", until="2025-07-26")
    assert memory.retrieve("tea", since=datetime(2025, 7, 25, 2), until=datetime(2025, 7, 26, tzinfo=UTC))
    assert not memory.retrieve("tea", until=datetime(2025, 7, 25, 2, tzinfo=UTC))


def test_two_keys_of_one_text_are_one_item_that_goes_with_the_last(memory: SqliteLongTermMemory) -> None:
    first = memory.record("likes tea", key="a")
    second = memory.record("likes  tea", key="b")
    assert (second["id"], second["status"]) == (first["id"], "duplicate")
    assert memory.delete("a")
    assert contents(memory.list()) == ["likes tea"]
    assert memory.delete("b")
    assert memory.list() == []


def test_a_message_beside_the_match_is_found_by_its_session(memory: SqliteLongTermMemory) -> None:
    for text in ("unrelated greeting", "which restaurant did you like best", "the Golden Lotus"):
        memory.record(text, session="s")
    memory.record("something else entirely", session="t")
    assert contents(memory.retrieve("which restaurant", limit=2))[1] == "the Golden Lotus"
    memory.delete(memory.retrieve("which restaurant", limit=1)[0]["id"] or "")
    assert (
        memory.retrieve("restaurant") == [] or "restaurant" not in memory.retrieve("restaurant")[0]["content"]
    )


def test_what_stands_deep_in_a_long_answer_is_found(memory: SqliteLongTermMemory) -> None:
    filler = " ".join(f"Sentence number {n} is about nothing in particular." for n in range(150))
    memory.record(filler + " The password hint is xylophone quartz. " + filler, speaker="assistant")
    for number in range(50):
        memory.record(f"short message {number} about a particular sentence")
    assert "xylophone" in memory.retrieve("xylophone quartz hint", limit=1)[0]["content"]


def test_explain_says_why(memory: SqliteLongTermMemory) -> None:
    memory.record("Caroline went hiking", speaker="Caroline", time="2023-05-08")
    (hit,) = memory.retrieve("hiking with Caroline on 8 May", explain=True)
    reasons: dict[str, Any] = hit["explain"]  # type: ignore[typeddict-item]
    assert {"words", "meaning", "date", "speaker"} <= set(reasons["parts"])
    assert sum(reasons["parts"].values()) == pytest.approx(hit["score"], abs=1e-3)
    assert "hike" in reasons["words"]


def test_pages_follow_each_other(memory: SqliteLongTermMemory) -> None:
    memory.record_many({"inputs": f"tea {'very ' * n}good"} for n in range(20))
    whole = contents(memory.retrieve("tea", limit=20))
    paged = [text for at in range(0, 20, 6) for text in contents(memory.retrieve("tea", limit=6, offset=at))]
    assert paged == whole


def test_diversity_puts_a_repetition_behind(memory: SqliteLongTermMemory) -> None:
    for text in ("green tea is good", "green tea is good indeed", "good green walls"):
        memory.record(text)
    assert contents(memory.retrieve("green tea good", limit=2, diversity=0.7))[1] == "good green walls"


def test_recency_prefers_the_newer(memory: SqliteLongTermMemory) -> None:
    memory.record("tea at noon", time="2020-01-01")
    memory.record("tea at dawn", time=datetime.now(UTC))
    assert contents(memory.retrieve("tea", recency=0.5))[0] == "tea at dawn"


def test_an_update_of_what_is_missing_says_so(memory: SqliteLongTermMemory) -> None:
    with pytest.raises(MemoryNotFoundError, match="nothing here"):
        memory.update("nothing here", "text")


def test_a_reranker_has_the_last_word(tmp_path: Path) -> None:
    class Longest:
        def rerank(self, query: str, texts: Any) -> list[float]:
            return [len(text) / 100 for text in texts]

    with SqliteLongTermMemory(tmp_path / "m.db", None, reranker=Longest()) as memory:
        memory.record("tea")
        memory.record("tea with a very long description")
        hit = memory.retrieve("tea", limit=1)[0]
        assert hit["content"] == "tea with a very long description"
        assert hit["score"] == pytest.approx(0.32)
