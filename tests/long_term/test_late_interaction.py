"""Late interaction in one SQLite file, and the token embedder that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jianmu.errors import ConfigError
from jianmu.memory import SqliteLongTermMemory
from jianmu.retrieval import ColbertEmbedder, TokenEmbedder
from jianmu.retrieval.late.tokens import check_tokens, choose_token_embedder, pack_tokens, unpack_tokens
from tests.long_term.late_interaction import LateInteractionContract, stored


class TestSqlite(LateInteractionContract):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "memory.db"

    def open(self, embedder: Any = None, **options: Any) -> SqliteLongTermMemory:
        return SqliteLongTermMemory(self.path, embedder, **options)


@given(
    st.lists(
        arrays(np.float32, st.tuples(st.integers(0, 5), st.just(8)), elements=st.floats(-1, 1, width=32))
    )
)
def test_token_vectors_come_back_in_their_direction(passages: list[np.ndarray]) -> None:
    counts, cells = unpack_tokens(pack_tokens(passages), 8)
    assert counts == [len(passage) for passage in passages]
    rows = np.concatenate(passages) if passages else np.zeros((0, 8))
    for cell, row in zip(cells.astype(np.float32), rows, strict=True):
        if np.abs(row).max() > 1e-6:
            assert cell @ row / np.linalg.norm(cell) / np.linalg.norm(row) > 0.99


def test_only_a_token_embedder_is_taken() -> None:
    assert choose_token_embedder("auto", None) is None
    assert choose_token_embedder("auto", "unknown") is None
    with pytest.raises(ConfigError, match="best"):
        choose_token_embedder("best", None)
    with pytest.raises(ConfigError, match="CallableTokenEmbedder"):
        choose_token_embedder(len, None)  # type: ignore[arg-type]


@pytest.mark.skipif(not ColbertEmbedder.installed(), reason="the extra `late` is not installed")
class TestColbert:
    def test_it_is_a_token_embedder_of_words_alike(self) -> None:
        embedder = ColbertEmbedder()
        assert isinstance(embedder, TokenEmbedder)
        texts = ["I brought my puppy to the vet.", "", "word " * 2_000, "The stock market fell"]
        checked = check_tokens(embedder.embed_document_tokens(texts), 4, embedder)
        assert checked[0][0] == ["I", "brought", "my", "puppy", "to", "the", "vet"]
        assert len(checked[1][0]) == 0
        assert 200 < len(checked[2][0]) <= 300
        ((_, dog),) = check_tokens([embedder.embed_query_tokens("dog")], 1, embedder)
        assert (checked[0][1] @ dog.T).max() > (checked[3][1] @ dog.T).max()

    def test_a_batch_means_what_each_text_means_alone(self) -> None:
        embedder = ColbertEmbedder()
        texts = ["short", "a somewhat longer text about a garden", "another one"]
        together = embedder.embed_document_tokens(texts)
        for text, tokens in zip(texts, together, strict=True):
            alone = embedder.embed_document_tokens([text])[0]
            assert list(tokens.words) == list(alone.words)
            ((_, a),), ((_, b),) = (check_tokens([t], 1, embedder) for t in (tokens, alone))
            assert ((a * b).sum(axis=1) > 0.9).all()

    def test_a_file_made_with_it_opens_with_it_by_itself(self, tmp_path: Path) -> None:
        with SqliteLongTermMemory(tmp_path / "m.db", None, late_interaction=ColbertEmbedder()) as memory:
            memory.record("We brought our puppy to the vet")
            memory.record("We brought our car to the garage")
        with SqliteLongTermMemory(tmp_path / "m.db", None) as memory:
            assert isinstance(memory.token_embedder, ColbertEmbedder)
            assert len(stored(memory)) == 2
            assert "puppy" in memory.retrieve("who brought the dog", limit=1)[0]["content"]
