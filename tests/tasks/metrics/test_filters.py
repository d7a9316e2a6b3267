"""Patch filters and positions of known structure have known ranks and similarities."""

import numpy as np
import pytest

from tasks.metrics.filters import position_similarity, principal_filters


def sines(side: int, dim: int) -> np.ndarray:
    """Fixed two-dimensional positions of sines and cosines, [side side dim], as MoCo-v3 and MAE have them."""
    frequency = 10000.0 ** (-np.arange(dim // 4) / (dim // 4))
    angle = np.arange(side)[:, None] * frequency
    axis = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    shape = (side, side, dim // 2)
    return np.concatenate([np.broadcast_to(axis[:, None], shape), np.broadcast_to(axis[None], shape)], axis=2)


def test_as_many_equal_filters_as_inputs_have_one_rank_less() -> None:
    found = principal_filters(np.eye(12).reshape(12, 3, 2, 2))
    assert found is not None
    assert found.shares == pytest.approx(np.full(11, 1 / 11))
    assert found.rank == pytest.approx(11)
    assert found.variance(28) == pytest.approx(1)
    assert found.variance(5) == pytest.approx(5 / 11)


def test_multiples_of_one_filter_have_rank_one_and_show_it() -> None:
    random = np.random.default_rng(0)
    one = random.normal(size=(3, 4, 4))
    found = principal_filters(random.normal(size=(20, 1, 1, 1)) * one)
    assert found is not None
    assert found.rank == pytest.approx(1)
    assert found.images.shape == (1, 4, 4, 3)
    largest = one.flat[np.abs(one).argmax()]
    signed = (one * np.sign(largest)).transpose(1, 2, 0)
    np.testing.assert_allclose(found.images[0], (signed - signed.min()) / np.ptp(signed), atol=1e-9)


def test_components_are_those_of_the_covariance() -> None:
    filters = np.random.default_rng(1).normal(size=(40, 3, 2, 2))
    values = np.sort(np.linalg.eigvalsh(np.cov(filters.reshape(40, 12), rowvar=False)))[::-1]
    found = principal_filters(filters)
    assert found is not None
    np.testing.assert_allclose(found.shares, values / values.sum())
    assert found.images.min() == 0
    assert found.images.max() == 1
    assert (np.ptp(found.images, axis=(1, 2, 3)) == 1).all()


def test_filters_that_are_all_the_same_have_no_components_and_a_constant_one_is_grey() -> None:
    assert principal_filters(np.full((8, 3, 2, 2), 0.7)) is None
    found = principal_filters(np.array([[[[1.0]], [[1.0]], [[1.0]]], [[[2.0]], [[2.0]], [[2.0]]]]))
    assert found is not None
    assert found.images.tolist() == [[[[0.5, 0.5, 0.5]]]]


def test_sines_and_cosines_have_their_similarities() -> None:
    found = position_similarity(sines(14, 768))
    assert found is not None
    assert found.cosine.shape == (14, 14, 14, 14)
    assert found.cosine[0, 0, 0, 1] == pytest.approx(0.98637, abs=5e-6)
    assert found.cosine[3, 4, 4, 5] == pytest.approx(0.97275, abs=5e-6)
    assert found.cosine[0, 0, 13, 13] == pytest.approx(0.66139, abs=5e-6)
    assert found.distance_rho == pytest.approx(0.8440, abs=5e-5)
    assert found.row == pytest.approx(0.8981, abs=5e-5)
    assert found.column == pytest.approx(0.8981, abs=5e-5)
    assert found.other == pytest.approx(0.7962, abs=5e-5)


def test_rows_and_columns_are_told_apart() -> None:
    """Positions that say the row alone are the same in one row, orthogonal elsewhere."""
    rows = np.broadcast_to(np.eye(3)[:, None], (3, 4, 3))
    found = position_similarity(rows)
    assert found is not None
    assert (found.row, found.column, found.other) == (1, 0, 0)
    turned = position_similarity(rows.transpose(1, 0, 2))
    assert turned is not None
    assert (turned.row, turned.column, turned.other) == (0, 1, 0)
    assert turned.distance_rho == found.distance_rho


def test_positions_without_direction_or_pairs_have_no_values() -> None:
    assert position_similarity(np.zeros((2, 2, 4))) is None
    alike = position_similarity(np.ones((2, 2, 4)))
    assert alike is not None
    assert alike.distance_rho is None
    assert alike.row == pytest.approx(1)
    single = position_similarity(np.ones((1, 1, 4)))
    assert single is not None
    assert (single.distance_rho, single.row, single.column, single.other) == (None, None, None, None)
    line = position_similarity(np.eye(4)[None])
    assert line is not None
    assert (line.row, line.column, line.other) == (0, None, None)
