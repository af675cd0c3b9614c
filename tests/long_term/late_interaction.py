"""What a memory with a token embedder promises, on any database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jianmu.errors import EmbedderError, EmbedderMismatchError
from jianmu.memory.long_term.engine.memory import EngineMemory
from jianmu.retrieval import CallableTokenEmbedder
from tests.long_term.embedders import hashed
from tests.long_term.token_embedders import alike


def stored(memory: EngineMemory) -> list[tuple[str, bytes]]:
    return memory._database.read(lambda tables: tables.all("SELECT model, tokens FROM memory_token"))


def contents(hits: list[Any]) -> list[str]:
    return [hit["content"] for hit in hits]


class LateInteractionContract:
    """Subclasses give `open`, which opens the same database again and again."""

    open: Callable[..., EngineMemory]

    @pytest.fixture
    def memory(self) -> Iterator[EngineMemory]:
        with self.open(late_interaction=alike()) as memory:
            yield memory

    @pytest.mark.parametrize("embedder", [None, hashed()])
    def test_a_token_of_like_meaning_decides_between_equal_texts(self, embedder: Any) -> None:
        with self.open(embedder, late_interaction=alike()) as memory:
            for text in (
                "Anna went with the umbrella",
                "Anna went with the puppy",
                "Anna went with the kettle",
            ):
                memory.record(text)
            assert memory.retrieve("which dog went with Anna", limit=1)[0]["content"].endswith("puppy")

    def test_a_short_answer_is_read_with_the_message_before(self, memory: EngineMemory) -> None:
        for text in ("good evening", "shall we take the puppy along", "no, the kettle"):
            memory.record(text, session="s")
        memory.record("no, the kettle is broken", session="t")
        assert contents(memory.retrieve("dogs kettle", limit=2))[0] == "no, the kettle"

    def test_a_script_without_spaces_is_left_to_the_other_legs(self, memory: EngineMemory) -> None:
        memory.record("我对花生过敏")
        memory.record("the puppy sleeps")
        assert contents(memory.retrieve("花生"))[0] == "我对花生过敏"
        assert contents(memory.retrieve("sleeping dog"))[0] == "the puppy sleeps"
        assert sorted(len(tokens) for _, tokens in stored(memory))[0] == 2

    def test_another_token_embedder_is_an_error_that_names_both_and_reindex_mends_it(self) -> None:
        with self.open(late_interaction=alike()) as memory:
            memory.record_many([{"inputs": f"puppy number {n}"} for n in range(150)])
        with pytest.raises(EmbedderMismatchError, match=r"'alike'.*'other'.*reindex"):
            self.open(late_interaction=alike("other"))
        with pytest.raises(EmbedderMismatchError, match=r"alike.*late_interaction"):
            self.open()
        with self.open(late_interaction=None) as memory:
            assert memory.retrieve("puppy 42", limit=1)[0]["content"] == "puppy number 42"
            with pytest.raises(EmbedderMismatchError, match="alike"):
                memory.record("a hole")
            assert memory.reindex(late_interaction=alike("other"), progress=False) == 150
            memory.record("the dog")
            assert {model for model, _ in stored(memory)} == {"other"}
        with self.open(late_interaction=alike("other")) as memory:
            assert len(stored(memory)) == 151
            memory.reindex(late_interaction=None, progress=False)
            assert stored(memory) == []
            memory.record("free again")

    def test_an_index_without_token_vectors_gets_them_by_reindex(self) -> None:
        with self.open() as memory:
            memory.record("the puppy sleeps")
        with self.open(late_interaction=alike()) as memory:
            with pytest.raises(EmbedderMismatchError, match="reindex"):
                memory.record("a hole")
            assert memory.reindex(progress=False) == 1
            assert len(stored(memory)) == 1

    def test_a_rebuild_that_failed_goes_on_where_it_stopped(self) -> None:
        seen: list[int] = []

        def failing(texts: list[str]) -> Any:
            seen.append(len(texts))
            if len(seen) == 2:
                raise ConnectionError("no route")
            return [(tokens.words, tokens.vectors) for tokens in alike().embed_document_tokens(texts)]

        with self.open() as memory:
            memory.record_many([{"inputs": f"puppy number {n}"} for n in range(300)])
            late = CallableTokenEmbedder(failing, id="failing", dimension=32)
            with pytest.raises(EmbedderError, match="failing"):
                memory.reindex(late_interaction=late, progress=False)
            assert memory.retrieve("number 42", limit=1)[0]["content"] == "puppy number 42"
            done, seen[:] = seen[0], [0, 0]
            assert memory.reindex(late_interaction=late, progress=False) == 300
            assert sum(seen) == 300 - done

    def test_token_vectors_go_with_their_text(self, memory: EngineMemory) -> None:
        memory.record("the puppy sleeps", key="k")
        memory.record("the clinic is far", key="other")
        memory.record("the kettle boils", key="k")
        assert len(stored(memory)) == 2
        memory.update("k", "the umbrella drips")
        assert len(stored(memory)) == 2
        assert contents(memory.retrieve("umbrella", limit=1)) == ["the umbrella drips"]
        memory.erase("k")
        assert len(stored(memory)) == 1
        memory.delete_all(())
        assert stored(memory) == []

    def test_a_text_that_expired_and_comes_back_has_token_vectors(self) -> None:
        now = [1_000.0]
        with self.open(late_interaction=alike(), clock=lambda: now[0]) as memory:
            memory.record("the puppy sleeps", ttl=10)
            now[0] += 60
            memory.record("the puppy sleeps")
            assert len(stored(memory)) == 1
            assert contents(memory.retrieve("sleeping dog")) == ["the puppy sleeps"]

    @pytest.mark.parametrize(
        "tokens", [[(["a"], [[1.0, 2.0]])], [(["a", "b"], [[0.0] * 4])], [(["a"], [[float("nan")] * 4])], []]
    )
    def test_tokens_that_are_none_are_refused_and_nothing_is_stored(self, tokens: Any) -> None:
        late = CallableTokenEmbedder(lambda texts: tokens, id="bad", dimension=4)
        with self.open(late_interaction=late) as memory:
            with pytest.raises(EmbedderError, match="bad"):
                memory.record("tea")
            assert memory.list() == []

    def test_a_dead_token_embedder_leaves_the_other_legs_and_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        alive = [True]

        def embed(texts: list[str]) -> Any:
            if not alive[0]:
                raise ConnectionError("no route")
            return [(tokens.words, tokens.vectors) for tokens in alike().embed_document_tokens(texts)]

        with self.open(late_interaction=CallableTokenEmbedder(embed, id="mortal", dimension=32)) as memory:
            memory.record("green tea")
            alive[0] = False
            assert contents(memory.retrieve("tea")) == ["green tea"]
        assert "mortal" in caplog.text
