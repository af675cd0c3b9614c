"""Embedders over a real local server, from functions, and by themselves; what "auto" takes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from jianmu.errors import ConfigError, EmbedderError, EmbedderMismatchError
from jianmu.memory import SqliteLongTermMemory
from jianmu.retrieval import OpenAIEmbedder, UseEmbedder
from tests.mem0.server import DIMENSIONS, Wire, serve


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as running:
        yield running


def over_http(wire: Wire, **options: object) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        "hash", base_url=wire.url + "/v1", api_key="sk-test", sleep=lambda _: None, **options
    )  # type: ignore[arg-type]


def test_texts_are_sent_in_batches_with_the_key_and_come_back_in_order(wire: Wire) -> None:
    embedder = over_http(wire, batch_size=2)
    vectors = embedder.embed_documents(["one", "two", "three"])
    assert [list(v) for v in vectors] == [list(embedder.embed_query(t)) for t in ("one", "two", "three")]
    assert [body["input"] for _, _, body in wire.requests[:2]] == [["one", "two"], ["three"]]
    assert wire.headers[0]["Authorization"] == "Bearer sk-test"
    assert embedder.dimension == DIMENSIONS


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(wire: Wire, status: int) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        wire.fail_with = None

    wire.fail_with = status
    embedder = OpenAIEmbedder("hash", base_url=wire.url + "/v1", api_key="", sleep=sleep)
    assert len(embedder.embed_query("tea")) == DIMENSIONS
    assert len(pauses) == 1


def test_a_refusal_is_an_error_without_the_key_and_nothing_is_stored(wire: Wire, tmp_path: Path) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", over_http(wire)) as memory:
        memory.record("likes tea")
        wire.fail_with = 401
        with pytest.raises(EmbedderError, match="401") as caught:
            memory.record("likes coffee")
        assert "sk-test" not in str(caught.value)
        assert [hit["content"] for hit in memory.list()] == ["likes tea"]


def test_a_search_with_a_dead_embedder_goes_on_by_words_and_warns(
    wire: Wire, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", over_http(wire)) as memory:
        memory.record("likes tea")
        wire.fail_with = 400
        with caplog.at_level(logging.WARNING, "jianmu"):
            assert [hit["content"] for hit in memory.retrieve("tea")] == ["likes tea"]
    assert "words alone" in caplog.text


def test_an_unreachable_server_and_a_wrong_address_are_named() -> None:
    embedder = OpenAIEmbedder("m", base_url="http://127.0.0.1:9/v1", api_key="", retries=0)
    with pytest.raises(EmbedderError, match="cannot be reached"):
        embedder.embed_query("tea")
    with pytest.raises(ConfigError, match="http"):
        OpenAIEmbedder("m", base_url="ftp://example.invalid")


def test_auto_takes_the_offline_embedder_and_never_another_than_the_recorded_one(
    wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with SqliteLongTermMemory(tmp_path / "auto.db") as memory:
        assert isinstance(memory.embedder, UseEmbedder)
        memory.record("我对花生过敏")
        assert memory.retrieve("peanut allergy")[0]["content"] == "我对花生过敏"
    with SqliteLongTermMemory(tmp_path / "http.db", over_http(wire)) as memory:
        memory.record("likes tea")
    with pytest.raises(EmbedderMismatchError, match="openai:hash"):
        SqliteLongTermMemory(tmp_path / "http.db")
    with pytest.raises(EmbedderMismatchError, match=r"openai:hash.*reindex"):
        SqliteLongTermMemory(tmp_path / "http.db", UseEmbedder())


def test_the_offline_embedder_knows_both_languages() -> None:
    import numpy as np

    embedder = UseEmbedder()
    texts = ["I am allergic to peanuts", "我对花生过敏", "The train leaves at nine"]
    one, two, three = (np.asarray(v, np.float32) for v in embedder.embed_documents(texts))
    assert one @ two > 0.6 > one @ three
    assert embedder.embed_query(texts[1]) @ two > 0.9


def test_what_all_questions_share_is_taken_out_of_a_question() -> None:
    import numpy as np

    embedder = UseEmbedder()
    questions = [
        "Where does my sister live?",
        "Who repaired the roof?",
        "我弟弟在哪里上班？",
        "谁修好了屋顶？",
    ]
    as_texts = np.asarray(embedder.embed_documents(questions))
    asked = np.stack([embedder.embed_query(question) for question in questions])
    assert np.allclose(np.linalg.norm(asked, axis=1), 1, atol=1e-5)
    for one, other in ((0, 1), (2, 3)):
        assert asked[one] @ asked[other] < as_texts[one] @ as_texts[other] - 0.1
    words = "roof repair"
    assert embedder.embed_query(words) @ embedder.embed_documents([words])[0] > 0.95
