"""Embeddings as bytes, and search over them: int8 with one scale a vector, signs first when there are many.

numpy only; nothing here is imported before an embedder is used.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["VectorIndex", "dequantize", "products", "quantize", "unit"]

_SIGNS_FROM = 5_000
"""From this many vectors on, signs choose the candidates and int8 decides."""
_RESCORED = 1_000
_SHARE = 25
"""So many candidates, or every 25th vector if that is more: of the nearest 60 among 100,000 sentences 99.9 %
were among them."""
_BLOCK = 4_096
_MULTIPLIED = 256
_THREADED = 200_000


def unit(vectors: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Vectors as rows of length 1; a zero vector stays zero."""
    matrix = np.atleast_2d(np.asarray(vectors, np.float32))
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(norms > 0, norms, 1), np.float32)


def quantize(vectors: npt.ArrayLike) -> list[bytes]:
    """Unit vectors as ``scale (float32) + int8 x dimension``; the error of a cosine is about 0.002."""
    matrix = unit(vectors)
    scales = np.abs(matrix).max(axis=1) / 127
    scales[scales == 0] = 1
    size = matrix.shape[1] + 4
    packed = np.empty((len(matrix), size), np.uint8)
    packed[:, :4] = scales.astype("<f4")[:, None].view(np.uint8)
    packed[:, 4:] = np.rint(matrix / scales[:, None]).astype(np.int8).view(np.uint8)
    whole = packed.tobytes()
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def products(rows: npt.NDArray[np.float32], others: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """``rows @ others.T`` in blocks below the size where BLAS starts threads, see `_dots`."""
    block = max(1, _THREADED // max(1, others.size))
    parts = [rows[start : start + block] @ others.T for start in range(0, len(rows), block)]
    return np.concatenate(parts) if parts else np.zeros((0, len(others)), np.float32)


def dequantize(blob: bytes) -> npt.NDArray[np.float32]:
    """The vector that `quantize` packed."""
    (scale,) = struct.unpack_from("<f", blob)
    return np.asarray(np.frombuffer(blob, np.int8, offset=4) * np.float32(scale), np.float32)


class VectorIndex:
    """The vectors of one namespace in memory.

    Each takes ``dimension + 12`` bytes, and ``dimension / 8`` more when there are many.
    Rows are appended in the order of their slots and never change; a removed row is marked.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.rows = 0
        self.removed = 0
        self._cells = np.empty((0, dimension), np.int8)
        self._scales = np.empty(0, np.float32)
        self._slots = np.empty(0, np.int64)
        self._signs: npt.NDArray[np.uint64] | None = None

    @property
    def last_slot(self) -> int:
        """The highest slot held, -1 when empty."""
        return int(self._slots[self.rows - 1]) if self.rows else -1

    @property
    def size(self) -> int:
        """Bytes held."""
        signs = self._signs.nbytes if self._signs is not None else 0
        return int(self._cells.nbytes + self._scales.nbytes + self._slots.nbytes + signs)

    def append(self, slots: Sequence[int], blobs: Sequence[bytes], expected: int = 0) -> None:
        """Add quantized vectors with ascending slots above `last_slot`; `expected` rows are made room for."""
        if not slots:
            return
        packed = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(slots), self.dimension + 4)
        self._reserve(max(self.rows + len(slots), expected))
        here = slice(self.rows, self.rows + len(slots))
        self._scales[here] = np.ascontiguousarray(packed[:, :4]).view("<f4")[:, 0]
        self._cells[here] = packed[:, 4:].view(np.int8)
        self._slots[here] = slots
        self.rows += len(slots)

    def mark_removed(self, slots: Sequence[int]) -> None:
        """Never return these slots again."""
        at = self._positions(np.asarray(slots, np.int64))
        live = np.unique(at[at >= 0])
        live = live[self._scales[live] != 0]
        self._scales[live] = 0
        self.removed += len(live)

    def search(self, query: npt.NDArray[np.float32], count: int) -> tuple[list[int], list[float]]:
        """The best `count` slots by cosine, best first, and their cosines."""
        count = min(count, self.rows)
        if count <= 0:
            return [], []
        looked_at = max(_RESCORED, self.rows // _SHARE)
        if count <= looked_at // 2 and self.rows >= _SIGNS_FROM and hasattr(np, "bitwise_count"):
            chosen = self._by_signs(query, looked_at)
            scores = _dots(self._cells[chosen], query) * self._scales[chosen]
        else:
            chosen = np.arange(self.rows)
            scores = _dots(self._cells[: self.rows], query) * self._scales[: self.rows]
        scores = np.where(self._scales[chosen] == 0, -2, scores)
        best = np.argpartition(scores, len(scores) - count)[-count:]
        best = best[np.argsort(-scores[best], kind="stable")]
        best = best[scores[best] > -2]
        return self._slots[chosen[best]].tolist(), scores[best].tolist()

    def scores(self, slots: Sequence[int], query: npt.NDArray[np.float32]) -> list[float]:
        """The cosines of these slots, -1 for one that is not held."""
        if not self.rows:
            return [-1.0] * len(slots)
        at = self._positions(np.asarray(slots, np.int64))
        values = _dots(self._cells[at], query) * self._scales[at]
        found: list[float] = np.where(at >= 0, values, -1).tolist()
        return found

    def vectors(self, slots: Sequence[int]) -> npt.NDArray[np.float32]:
        """The vectors of these slots, zero for one that is not held."""
        if not self.rows:
            return np.zeros((len(slots), self.dimension), np.float32)
        at = self._positions(np.asarray(slots, np.int64))
        rows = self._cells[at].astype(np.float32) * self._scales[at][:, None]
        return np.where((at >= 0)[:, None], rows, np.float32(0))

    def _positions(self, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        at = np.searchsorted(self._slots[: self.rows], slots)
        at = np.minimum(at, self.rows - 1)
        return np.where(self._slots[at] == slots, at, -1) if self.rows else np.full(len(slots), -1)

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._scales):
            return
        rows = max(rows, int(len(self._scales) * 1.5) if self.rows else rows)
        cells = np.empty((rows, self.dimension), np.int8)
        cells[: self.rows] = self._cells[: self.rows]
        scales, slots = np.empty(rows, np.float32), np.empty(rows, np.int64)
        scales[: self.rows], slots[: self.rows] = self._scales[: self.rows], self._slots[: self.rows]
        self._cells, self._scales, self._slots, self._signs = cells, scales, slots, None

    def _by_signs(self, query: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.intp]:
        signs = self._sign_rows()
        wanted = _signs(query[None, :])[0]
        distance = np.zeros(self.rows, np.uint16)
        for word in range(signs.shape[0]):
            distance += np.bitwise_count(signs[word] ^ wanted[word])
        distance[self._scales[: self.rows] == 0] = self.dimension + 1
        histogram = np.bincount(distance, minlength=self.dimension + 2)
        farthest = int(np.searchsorted(np.cumsum(histogram), count))  # counted, which beats a partition
        near = np.flatnonzero(distance <= farthest)
        return near if len(near) <= 2 * count else np.sort(near[np.argsort(distance[near])[:count]])

    def _sign_rows(self) -> npt.NDArray[np.uint64]:
        """Signs, one row a 64-bit word, so that one word of all vectors lies together."""
        done = self._signs.shape[1] if self._signs is not None else 0
        if self._signs is None or done < self.rows:
            parts = [self._signs] if self._signs is not None else []
            for start in range(done, self.rows, _BLOCK):
                block = self._cells[start : min(start + _BLOCK, self.rows)]
                parts.append(_signs(block).T)
            self._signs = np.ascontiguousarray(np.concatenate(parts, axis=1))
        return self._signs


def _dots(cells: npt.NDArray[np.int8], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Products with the query, in blocks that stay in the cache and below the size where BLAS starts threads.

    Its threads wait by spinning, which costs tens of milliseconds as soon as other work needs the cores.
    """
    scores = np.empty(len(cells), np.float32)
    buffer = np.empty((min(_MULTIPLIED, len(cells)), cells.shape[1]), np.float32)
    for start in range(0, len(cells), _MULTIPLIED):
        block = cells[start : start + _MULTIPLIED]
        np.copyto(buffer[: len(block)], block)
        np.dot(buffer[: len(block)], query, out=scores[start : start + len(block)])
    return scores


def _signs(matrix: npt.NDArray[np.float32] | npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    bits = np.packbits(matrix > 0, axis=1)
    pad = -bits.shape[1] % 8
    if pad:
        bits = np.pad(bits, ((0, 0), (0, pad)))
    return np.ascontiguousarray(bits).view(np.uint64)
