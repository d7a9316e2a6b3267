"""Ranks of vectors, and neighbours in two views of the same images."""

import numpy as np
import pytest

from layerboard.tasks.analyses.label_free import (
    EPSILON,
    effective_rank,
    other_neighbours,
    overlap,
    rankme,
    retrieved,
    singular_values,
    spectrum_decay,
)


def drawn(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns))


@pytest.mark.parametrize("k", [1, 2, 7])
def test_equal_directions_are_counted(k: int) -> None:
    values = singular_values(3 * np.eye(20)[:, :k])
    assert effective_rank(values) == pytest.approx(k)


def test_known_shares() -> None:
    # shares 3/4 and 1/4: entropy 0.562335
    assert effective_rank(np.array([3.0, 1.0, 0.0])) == pytest.approx(1.754765, abs=1e-6)
    shares = np.array([0.75, 0.25, 0.0]) + EPSILON
    assert rankme(np.array([3.0, 1.0, 0.0])) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (8, 8)])
def test_singular_values_are_those_of_a_decomposition(shape: tuple[int, int]) -> None:
    features = drawn(*shape)
    expected = np.linalg.svd(features, compute_uv=False)
    np.testing.assert_allclose(singular_values(features), expected, rtol=1e-7)
    np.testing.assert_allclose(singular_values(features.astype(np.float32)), expected, rtol=1e-5)


def test_neither_scale_nor_rotation_nor_order_matters() -> None:
    features = drawn(40, 6) * [1, 2, 3, 4, 5, 6]
    rotation = np.linalg.qr(drawn(6, 6, 1))[0]
    rank = effective_rank(singular_values(features))
    for other in (1e-3 * features, features @ rotation, features[::-1].copy()):
        assert effective_rank(singular_values(other)) == pytest.approx(rank)
    assert 1 <= rank <= 6


def test_zeros_have_no_rank() -> None:
    assert np.isnan(effective_rank(np.zeros(3)))
    assert np.isnan(rankme(np.zeros(3)))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_decay_of_a_power_law_is_its_power(power: float) -> None:
    eigenvalues = np.arange(1, 101.0) ** -power
    assert spectrum_decay(7 * np.sqrt(eigenvalues)) == pytest.approx(power, abs=1e-9)


def test_the_last_half_of_the_ranks_does_not_count_for_the_decay() -> None:
    values = 1 / np.arange(1, 41.0)
    other = np.concatenate([values[:20], values[20:] / 100])
    assert spectrum_decay(other) == pytest.approx(spectrum_decay(values))


def test_few_directions_have_no_decay() -> None:
    values = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 1e-9])
    assert np.isnan(spectrum_decay(values))  # five, of which half are two
    assert np.isnan(spectrum_decay(np.zeros(8)))
    assert np.isnan(spectrum_decay(np.zeros(0)))


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
