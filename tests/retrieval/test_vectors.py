"""Quantized vectors and the search over them."""

import numpy as np
import pytest

from jianmu.retrieval.vectors import VectorIndex, dequantize, quantize, unit


def filled(rows: int, dimension: int = 64, seed: int = 1) -> tuple[VectorIndex, np.ndarray]:
    vectors = unit(np.random.default_rng(seed).normal(size=(rows, dimension)))
    index = VectorIndex(dimension)
    half = rows // 2
    blobs = quantize(vectors)
    index.append(range(half), blobs[:half])
    index.append(range(half, rows), blobs[half:])
    return index, vectors


def test_a_vector_comes_back_close_to_what_it_was() -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(50, 512)))
    for vector, blob in zip(vectors, quantize(vectors), strict=True):
        assert len(blob) == 516
        assert abs(float(dequantize(blob) @ vector) - 1) < 0.004


def test_a_zero_vector_is_kept_and_matches_nothing() -> None:
    (blob,) = quantize(np.zeros((1, 8)))
    assert not dequantize(blob).any()


@pytest.mark.parametrize("rows", [10, 500, 25_000])
def test_the_nearest_vectors_are_found_in_their_order(rows: int) -> None:
    index, vectors = filled(rows)
    query = unit(vectors[rows // 3] + 0.2 * vectors[1])[0]
    slots, cosines = index.search(query, 5)
    exact = np.argsort(-(vectors @ query))[:5]
    assert slots[0] == exact[0]
    assert len(set(slots) & set(exact.tolist())) >= 4
    assert cosines == sorted(cosines, reverse=True)
    assert np.allclose(index.scores(slots, query), cosines, atol=1e-6)


def test_a_removed_slot_never_comes_back() -> None:
    index, vectors = filled(100)
    assert index.search(vectors[7], 1)[0] == [7]
    index.mark_removed([7, 7, 4_000])
    assert index.removed == 1
    assert 7 not in index.search(vectors[7], 100)[0]


def test_an_empty_index_finds_nothing() -> None:
    index = VectorIndex(8)
    query = np.ones(8, np.float32)
    assert index.search(query, 3) == ([], [])
    assert index.scores([1, 2], query) == [-1.0, -1.0]
