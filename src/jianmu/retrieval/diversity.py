"""Maximal marginal relevance (Carbonell and Goldstein, 1998): good hits that do not repeat each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["by_marginal_relevance"]


def by_marginal_relevance(
    scores: Sequence[float], likeness: Callable[[int, int], float], *, share: float, count: int
) -> list[int]:
    """The order in which to take hits.

    Args:
        scores: Relevance of each hit.
        likeness: How alike two hits are, 0 to 1.
        share: 0 keeps the order by score, 1 looks at likeness alone.
        count: How many to take.

    Returns:
        Positions in `scores`, best first.
    """
    left = sorted(range(len(scores)), key=lambda at: -scores[at])
    worst = [0.0] * len(scores)
    taken: list[int] = []
    while left and len(taken) < count:
        best = max(left, key=lambda at: (1 - share) * scores[at] - share * worst[at])
        left.remove(best)
        taken.append(best)
        for at in left:
            worst[at] = max(worst[at], likeness(at, best))
    return taken
