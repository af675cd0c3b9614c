"""Vectors of words and of tokens, kept for the comparison of the leading texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jianmu.memory.long_term.engine.spaces import Space
from jianmu.memory.long_term.engine.statements import Statements, marks, parts

__all__ = ["TokenTables"]


class TokenTables(Statements):
    """Vectors by word, and by text and model."""

    def words(self, ids: Sequence[int]) -> dict[int, bytes]:
        """The vectors kept for words, by `word_id`."""
        return {
            id: bytes(vector)
            for part in parts(ids)
            for id, vector in self.all(
                f"SELECT word, vector FROM memory_word WHERE word IN ({marks(part)})",  # noqa: S608 - marks only
                part,
            )
        }

    def add_words(self, words: Sequence[tuple[int, bytes]]) -> None:
        """Keep vectors of words."""
        if words:
            sql = "INSERT INTO memory_word (word, vector) VALUES (?, ?) ON CONFLICT DO NOTHING"
            self.run_many(sql, words)

    def tokens(self, space: Space, model: str, ids: Iterable[int]) -> dict[int, bytes]:
        """The packed token vectors of items by a token embedder, by the item's id."""
        return {
            id: bytes(packed)
            for part in parts(dict.fromkeys(ids))
            for id, packed in self.all(
                "SELECT i.id, t.tokens FROM memory_item AS i JOIN memory_token AS t"  # noqa: S608 - marks only
                " ON t.space = i.space AND t.digest = i.digest AND t.model = ?"
                f" WHERE i.id IN ({marks(part)}) AND i.space = ?",
                (model, *part, space.id),
            )
        }

    def tokens_known(self, space: Space, model: str, digests: Iterable[bytes]) -> set[bytes]:
        """Those of the texts that have token vectors by this embedder."""
        return {
            bytes(digest)
            for part in parts(digests)
            for (digest,) in self.all(
                "SELECT digest FROM memory_token"  # noqa: S608 - marks only
                f" WHERE space = ? AND model = ? AND digest IN ({marks(part)})",
                (space.id, model, *part),
            )
        }

    def add_tokens(self, space: Space, model: str, tokens: Mapping[bytes, bytes]) -> None:
        """Keep packed token vectors of texts, by the text's digest."""
        if tokens:
            sql = (
                "INSERT INTO memory_token (space, digest, model, tokens) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING"
            )
            self.run_many(
                sql, [(space.id, digest, model, packed) for digest, packed in sorted(tokens.items())]
            )

    def remove_tokens(self, space: Space, digest: bytes) -> None:
        """Drop the token vectors of a text."""
        self.run("DELETE FROM memory_token WHERE space = ? AND digest = ?", (space.id, digest))
