import numpy as np
import pytest

from layerboard.tasks.analyses.metrics.effective_rank import other_neighbours, overlap, retrieved


def drawn(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def test_neighbours_are_those_of_all_cosines() -> None:
    vectors = drawn(30, 5)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -2)
    found = other_neighbours(vectors, 4)
    np.testing.assert_array_equal(np.sort(found), np.sort(np.argsort(-cosine)[:, :4]))


def test_equal_vectors_are_neighbours_of_each_other_and_not_of_themselves() -> None:
    found = other_neighbours(np.ones((5, 3), np.float32), 2)
    assert found.shape == (5, 2)
    assert not (found == np.arange(5)[:, None]).any()


def test_overlap() -> None:
    first = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    second = np.array([[3, 2, 1], [6, 7, 8], [1, 2, 3]])
    assert overlap(first, second).tolist() == [1, pytest.approx(1 / 3), 0]
    neighbours = [other_neighbours(drawn(400, 20, seed), 10) for seed in (0, 1)]
    assert overlap(*neighbours).mean() == pytest.approx(10 / 399, abs=0.01)  # by chance


def test_retrieved() -> None:
    vectors = drawn(20, 6)
    assert retrieved(vectors, 3 * vectors).tolist() == [1] * 20
    assert retrieved(vectors, np.roll(vectors, 1, axis=0)).tolist() == [0] * 20
    vectors[7] = vectors[2]  # an image that is there twice is found by either
    assert retrieved(vectors, vectors).tolist() == [1] * 20
