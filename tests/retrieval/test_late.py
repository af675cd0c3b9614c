"""Late interaction word by word: the measure, the vectors of words, and what a search gains by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.errors import EmbedderError
from jianmu.memory import SqliteLongTermMemory
from jianmu.retrieval.late.maxsim import max_sim
from jianmu.retrieval.late.words import WordVectors, content_words, word_id

MEANINGS = {"hospital": 0, "clinic": 0, "dog": 1, "puppy": 1, "rain": 2, "quartz": 3}


class Meanings:
    """Knows which few words mean the same; a whole text means nothing to it."""

    id, dimension, embeds_words = "meanings", 8, True

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.embedded += texts
        rows = np.full((len(texts), 8), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[MEANINGS.get(text, 4 + len(text) % 4)] = 1
        return rows

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


@given(st.lists(st.lists(st.integers(0, 6), max_size=70), max_size=6), st.integers(1, 4), st.integers(1, 40))
def test_the_measure_is_the_best_chunks_weighted_mean_of_best_similarities(
    texts: list[list[int]], words: int, chunk: int
) -> None:
    similarities = np.random.default_rng(words).uniform(-1, 1, (7, words)).astype(np.float32)
    weights = np.arange(1, words + 1, dtype=np.float32)
    for text, score in zip(texts, max_sim(similarities, texts, weights, chunk), strict=True):
        expected = [
            sum(
                w * max(similarities[row, at] for row in text[start : start + chunk])
                for at, w in enumerate(weights)
            )
            for start in range(0, len(text), chunk)
        ]
        assert (score is None) == (not text)
        if score is not None:
            assert score == pytest.approx(max(expected) / weights.sum(), abs=1e-5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog's Clinic, and the RAIN!", ["dog", "clinic", "rain"]),
        ("don't 3.10 getUserById", ["don't", "3", "10", "getuserbyid"]),
        ("猫喜欢 fish", []),
        ("", []),
    ],
)
def test_content_words_are_what_a_text_is_about(text: str, words: list[str]) -> None:
    assert content_words(text) == words


@given(st.text())
def test_any_text_gives_bounded_words(text: str) -> None:
    assert all(0 < len(word) <= 40 for word in content_words(text))


def test_a_word_is_embedded_once_and_comes_back_from_where_it_was_saved() -> None:
    embedder = Meanings()
    vectors = WordVectors(embedder.embed_documents)
    saved = dict(vectors.to_save(["dog and rain", "dog"], lambda ids: {}))
    assert set(saved) == {word_id("dog"), word_id("rain")}
    assert vectors.to_save(["rain dog"], lambda ids: saved) == []
    later = WordVectors(embedder.embed_documents)
    assert embedder.embedded == ["dog", "rain"]
    scores = later.score(["dog"], [1.0], [["rain", "dog"], ["rain"], []], lambda ids: saved)
    assert embedder.embedded == ["dog", "rain"]
    assert scores[0] == pytest.approx(1, abs=0.01)
    assert scores[1] is not None
    assert scores[1] < 0.1
    assert scores[2] is None


def test_a_full_cache_starts_anew_and_still_answers() -> None:
    vectors = WordVectors(Meanings().embed_documents, limit=3)
    for word in ("dog", "rain", "quartz", "hospital", "clinic"):
        assert vectors.score([word], [1.0], [[word, "dog"]])[0] == pytest.approx(1, abs=0.01)


def test_a_word_of_like_meaning_decides_between_equal_texts(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", Meanings()) as memory:
        for text in ("Anna went with the umbrella", "Anna went with the puppy", "Anna went with the kettle"):
            memory.record(text)
        assert memory.retrieve("which dog went with Anna", limit=1)[0]["content"].endswith("puppy")
        assert memory.retrieve("Anna 和 dog", limit=3)  # a script without spaces: the other legs answer


def test_words_met_while_writing_need_no_embedding_in_another_process(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", Meanings()) as memory:
        memory.record_many([{"inputs": f"puppy number{n}"} for n in range(5)])
        memory.update(memory.list()[0]["id"] or "", "clinic visit")
    embedder = Meanings()
    with SqliteLongTermMemory(tmp_path / "m.db", embedder) as memory:
        memory.retrieve("hospital puppy")
        assert sorted(embedder.embedded) == ["hospital", "hospital puppy"]
        embedder.embedded.clear()
        memory.reindex(progress=False)
        assert {"clinic", "puppy"} <= set(embedder.embedded)


def test_erase_forgets_the_vectors_of_words_too(tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", Meanings()) as memory:
        memory.record("quartz", key="k")
        memory.erase("k")
        assert memory._database.read(lambda tables: tables.words([word_id("quartz")])) == {}


def test_a_failure_while_comparing_words_leaves_the_other_legs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Meanings):
        def embed_documents(self, texts: Sequence[str]) -> Any:
            if any(text == "dog" for text in texts):
                raise EmbedderError("no dogs")
            return super().embed_documents(texts)

    with SqliteLongTermMemory(tmp_path / "m.db", Fails()) as memory:
        memory.record("green tea")
        assert memory.retrieve("dog tea")[0]["content"] == "green tea"
    assert "word by word" in caplog.text
