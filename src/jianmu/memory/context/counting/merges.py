"""How many tokens byte-pair encoding makes of one piece of text, in n log n steps.

The plain algorithm looks at every pair for every merge: a run of 20,000 Chinese characters without
punctuation, one piece to the tokenizer, took it a minute. Here the pairs wait in a heap.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

__all__ = ["count_merged"]


def count_merged(piece: bytes, ranks: Mapping[bytes, int]) -> int:
    """Return the number of tokens of `piece`.

    The pair whose union has the lowest rank is merged first, the leftmost of equals, until none has a rank
    (Sennrich et al. 2016, as tiktoken does it).

    Args:
        piece: Bytes that are no token by themselves.
        ranks: The vocabulary; every single byte is in it.
    """
    size = len(piece)
    # Parts by the place they begin at: where the part ends, and where the part before it begins.
    end = list(range(1, size + 1))
    before = list(range(-1, size - 1))
    alive = bytearray(b"\x01") * size
    heap: list[tuple[int, int, int]] = []

    def consider(start: int) -> None:
        middle = end[start]
        if middle < size:
            rank = ranks.get(piece[start : end[middle]])
            if rank is not None:
                heappush(heap, (rank, start, end[middle]))

    for start in range(size - 1):
        rank = ranks.get(piece[start : start + 2])
        if rank is not None:
            heap.append((rank, start, start + 2))
    heapify(heap)
    count = size
    while heap:
        _, start, stop = heappop(heap)
        middle = end[start]
        # A pair is out of date if its first part is gone or either part has grown since.
        if not alive[start] or middle >= stop or middle >= size or end[middle] != stop:
            continue
        alive[middle] = 0
        end[start] = stop
        if stop < size:
            before[stop] = start
        count -= 1
        consider(start)
        if before[start] >= 0:
            consider(before[start])
    return count
