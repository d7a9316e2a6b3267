"""Indexes of vectors: exact where they must be, with the bytes that they take, on small and odd vectors."""

import numpy as np
import pytest

from layerboard.tasks.retrieval.search_index import index_costs, repeated


def drawn(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, 16)).astype(np.float32)


def test_an_exact_index_misses_nothing_and_links_take_bytes() -> None:
    flat, graph, lists, *larger = index_costs(drawn(300), drawn(20, 1), (300, 1000))
    assert [each.index for each in (flat, graph, lists)] == ["flat", "HNSW", "IVF"]
    assert flat.recall == 100
    assert 64 < flat.bytes < 66 < lists.bytes < 90 < graph.bytes
    assert all(80 < each.recall <= 100 and each.ms > 0 for each in (graph, lists, *larger))
    assert {each.vectors for each in larger} == {1000}


def test_vectors_are_repeated_with_noise() -> None:
    database = drawn(50)
    grown = repeated(database, 500)
    np.testing.assert_array_equal(grown[:50], database)
    assert 0.4 < (grown[50:100] - database).std() < 0.6
    assert len(np.unique(grown, axis=0)) == 500
    np.testing.assert_array_equal(repeated(database, 20), database[:20])


@pytest.mark.parametrize("vectors", [drawn(1), np.ones((30, 16), np.float32), np.zeros((5, 16), np.float32)])
def test_few_and_equal_vectors_are_found(vectors: np.ndarray) -> None:
    assert {each.recall for each in index_costs(vectors, vectors[:3], (len(vectors),))} == {100}


def test_vectors_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        next(index_costs(drawn(3) * np.float32(np.nan), drawn(3), (3,)))
