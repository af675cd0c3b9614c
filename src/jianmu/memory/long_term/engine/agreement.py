"""Whether an embedder fits the index: chosen at opening, checked inside every transaction."""

from __future__ import annotations

import logging

from jianmu.errors import EmbedderMismatchError, LongTermMemoryError
from jianmu.memory.long_term.engine.tables import Tables
from jianmu.retrieval.embedders.base import Embedder, EmbedderChoice
from jianmu.retrieval.embedders.choose import choose_embedder
from jianmu.retrieval.embedders.use import UseEmbedder
from jianmu.retrieval.late.tokens import TokenEmbedder, TokenEmbedderChoice, choose_token_embedder
from jianmu.retrieval.tokens import ANALYZER_ID

__all__ = ["choose", "choose_late", "require_agreement"]

_log = logging.getLogger("jianmu.memory.long_term")


def choose(choice: EmbedderChoice, recorded: str | None, *, words_only: bool = False) -> Embedder | None:
    """The embedder that `choice` means for an index made with `recorded`, or that holds `words_only`.

    Raises:
        EmbedderMismatchError: It is another one, or "auto" cannot have the recorded one.
    """
    if words_only and choice == "auto":
        _log.warning(
            "this memory was made with words alone and goes on so; reindex('auto') adds search by meaning"
        )
        return None
    embedder = choose_embedder(choice, recorded=recorded)
    name = None if embedder is None else embedder.id
    if recorded is not None and name is not None and recorded != name:
        raise EmbedderMismatchError(_mismatch(recorded, name))
    if recorded is not None and choice == "auto" and embedder is None:
        raise EmbedderMismatchError(
            f"the index was made with embedder {recorded!r}, which is not available here:{_where(recorded)}"
            " pass it as embedder=..., or embedder=None to search by words alone"
        )
    if choice == "auto":
        if embedder is None:
            _log.warning(
                "no offline embedder is installed: memory works on words alone"
                " (install jianmu with the extra [local] for search by meaning)"
            )
        else:
            _log.info("memory uses embedder %s", name)
    return embedder


def choose_late(choice: TokenEmbedderChoice, recorded: str | None) -> TokenEmbedder | None:
    """The token embedder that `choice` means for an index made with `recorded`.

    Raises:
        EmbedderMismatchError: It is another one, or "auto" cannot have the recorded one.
    """
    embedder = choose_token_embedder(choice, recorded)
    if recorded is None or (embedder is not None and embedder.id == recorded):
        return embedder
    if embedder is not None:
        raise EmbedderMismatchError(_late_mismatch(recorded, embedder.id))
    if choice == "auto":
        raise EmbedderMismatchError(
            f"the index has token vectors of {recorded!r}, which is not available here: pass it as"
            " late_interaction=..., or late_interaction=None to search without"
        )
    return None


def require_agreement(
    tables: Tables, embedder: Embedder | None, late: TokenEmbedder | None, *, writing: bool = False
) -> None:
    """Refuse an index of another embedder or another way to split words; an empty one is adopted by a writer.

    Raises:
        EmbedderMismatchError: The index has vectors of another embedder, or none beside its words.
        LongTermMemoryError: Its words were split by another rule.
    """
    analyzer = tables.setting("analyzer")
    if analyzer is None and writing:
        tables.set_setting("analyzer", ANALYZER_ID)
    elif analyzer not in (None, ANALYZER_ID):
        raise LongTermMemoryError(
            f"the word index was made by {analyzer!r}, this version uses {ANALYZER_ID!r}: call reindex()"
        )
    _require_late(tables, late, writing=writing)
    recorded = tables.setting("embedder")
    if embedder is None:
        if recorded is not None and writing:
            raise EmbedderMismatchError(
                f"the index has vectors of embedder {recorded!r}; writing without it would leave holes:"
                " open with that embedder, or call reindex() to go on with words alone"
            )
        return
    if recorded is None:
        if writing:
            _adopt(tables, embedder)
    elif recorded != embedder.id:
        raise EmbedderMismatchError(_mismatch(recorded, embedder.id))


def _adopt(tables: Tables, embedder: Embedder) -> None:
    """An index without vectors yet: it now belongs to this embedder, if it is empty."""
    if tables.all("SELECT 1 FROM memory_item LIMIT 1"):
        raise EmbedderMismatchError(
            f"the index was made with words alone and embedder {embedder.id!r} is given:"
            " call reindex() to add vectors, or open with embedder=None"
        )
    tables.set_setting("embedder", embedder.id)
    tables.set_setting("dimension", str(embedder.dimension))


def _require_late(tables: Tables, late: TokenEmbedder | None, *, writing: bool) -> None:
    recorded = tables.setting("token_embedder")
    if late is None:
        if recorded is not None and writing:
            raise EmbedderMismatchError(
                f"the index has token vectors of {recorded!r}; writing without it would leave holes: open"
                " with that token embedder, or call reindex(late_interaction=None) to go on without"
            )
    elif recorded is None:
        if writing:
            if tables.all("SELECT 1 FROM memory_item LIMIT 1"):
                raise EmbedderMismatchError(
                    f"the index was made without token vectors and {late.id!r} is given: call reindex() to"
                    " add them, or open with late_interaction=None"
                )
            tables.set_setting("token_embedder", late.id)
    elif recorded != late.id:
        raise EmbedderMismatchError(_late_mismatch(recorded, late.id))


def _where(embedder: str) -> str:
    return " install jianmu with the extra [local]," if embedder == UseEmbedder.id else ""


def _late_mismatch(recorded: str, given: str) -> str:
    return (
        f"the index has token vectors of {recorded!r} and {given!r} is given: open it with the first, or call"
        " reindex(late_interaction=...) on a memory opened with late_interaction=None"
    )


def _mismatch(recorded: str, given: str) -> str:
    return (
        f"the index was made with embedder {recorded!r} and {given!r} is given: open it with the first,"
        " or call reindex() on a memory opened with embedder=None"
    )
