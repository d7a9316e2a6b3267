"""Patch filters and positions of known structure have known ranks and similarities."""

import numpy as np
import pytest

from layerboard.tasks.analyses.inspect import position_similarity, principal_filters
from layerboard.tasks.analyses.metrics.effective_rank import equal_shares


def sines(side: int, dim: int) -> np.ndarray:
    """Fixed two-dimensional positions of sines and cosines, [side side dim], as MoCo-v3 and MAE have them."""
    frequency = 10000.0 ** (-np.arange(dim // 4) / (dim // 4))
    angle = np.arange(side)[:, None] * frequency
    axis = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    shape = (side, side, dim // 2)
    return np.concatenate([np.broadcast_to(axis[:, None], shape), np.broadcast_to(axis[None], shape)], axis=2)


def test_multiples_of_one_filter_have_rank_one_and_show_it() -> None:
    random = np.random.default_rng(0)
    one = random.normal(size=(3, 4, 4))
    found = principal_filters(random.normal(size=(20, 1, 1, 1)) * one)
    assert found is not None
    shares, images = found
    assert equal_shares(shares) == pytest.approx(1)
    assert images.shape == (1, 4, 4, 3)
    largest = one.flat[np.abs(one).argmax()]
    signed = (one * np.sign(largest)).transpose(1, 2, 0)
    np.testing.assert_allclose(images[0], (signed - signed.min()) / np.ptp(signed), atol=1e-9)


def test_components_are_those_of_the_covariance() -> None:
    filters = np.random.default_rng(1).normal(size=(40, 3, 2, 2))
    values = np.sort(np.linalg.eigvalsh(np.cov(filters.reshape(40, 12), rowvar=False)))[::-1]
    found = principal_filters(filters)
    assert found is not None
    shares, images = found
    np.testing.assert_allclose(shares, values / values.sum())
    assert images.min() == 0
    assert images.max() == 1
    assert (np.ptp(images, axis=(1, 2, 3)) == 1).all()


def test_filters_that_are_all_the_same_have_no_components_and_a_constant_one_is_grey() -> None:
    assert principal_filters(np.full((8, 3, 2, 2), 0.7)) is None
    found = principal_filters(np.array([[[[1.0]], [[1.0]], [[1.0]]], [[[2.0]], [[2.0]], [[2.0]]]]))
    assert found is not None
    assert found[1].tolist() == [[[[0.5, 0.5, 0.5]]]]


def test_sines_and_cosines_have_their_similarities() -> None:
    found = position_similarity(sines(14, 768))
    assert found is not None
    cosine, means = found
    assert cosine.shape == (14, 14, 14, 14)
    assert cosine[0, 0, 0, 1] == pytest.approx(0.98637, abs=5e-6)
    assert cosine[3, 4, 4, 5] == pytest.approx(0.97275, abs=5e-6)
    assert cosine[0, 0, 13, 13] == pytest.approx(0.66139, abs=5e-6)
    expected = {"distance-rho": 0.8440, "row": 0.8981, "column": 0.8981, "other": 0.7962}
    assert means == pytest.approx(expected, abs=5e-5)


def test_rows_and_columns_are_told_apart() -> None:
    """Positions that say the row alone are the same in one row, orthogonal elsewhere."""
    rows = np.broadcast_to(np.eye(3)[:, None], (3, 4, 3))
    found, turned = (position_similarity(positions) for positions in (rows, rows.transpose(1, 0, 2)))
    assert found is not None
    assert turned is not None
    rho = found[1].pop("distance-rho")
    assert found[1] == {"row": 1, "column": 0, "other": 0}
    assert turned[1] == {"distance-rho": rho, "row": 0, "column": 1, "other": 0}


def test_positions_without_direction_or_pairs_have_no_values() -> None:
    assert position_similarity(np.zeros((2, 2, 4))) is None
    alike = position_similarity(np.ones((2, 2, 4)))
    assert alike is not None
    assert "distance-rho" not in alike[1]
    assert alike[1]["row"] == pytest.approx(1)
    single = position_similarity(np.ones((1, 1, 4)))
    assert single is not None
    assert single[1] == {}
    line = position_similarity(np.eye(4)[None])
    assert line is not None
    assert line[1] == {"row": 0}
