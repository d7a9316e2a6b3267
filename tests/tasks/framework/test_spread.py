"""Vectors around the mean of others: against scikit-learn, and planted covariances."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from layerboard.tasks.framework import transformed
from layerboard.tasks.framework.transformed import whitening, zscore

RANDOM = np.random.default_rng(0)
VECTORS = (RANDOM.standard_normal((400, 6)) @ RANDOM.standard_normal((6, 6)) + 5).astype(np.float32)


def test_zscores_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformed, "TOGETHER", 64)
    other = RANDOM.standard_normal((9, 6)).astype(np.float32)
    expected = StandardScaler().fit(VECTORS.astype(np.float64)).transform(other)
    parts = [VECTORS[:150], np.full((3, 6), np.nan, np.float32), VECTORS[150:]]
    np.testing.assert_allclose(zscore(parts).of(other), expected, atol=1e-4)


def test_a_channel_that_does_not_vary_says_nothing() -> None:
    vectors = VECTORS.copy()
    vectors[:, 2] = 0.1
    found = zscore([vectors]).of(VECTORS)
    assert (found[:, 2] == 0).all()
    assert np.abs(np.delete(found, 2, axis=1).std(axis=0) - 1).max() < 1e-4


def test_whitened_vectors_compare_like_whitened_principal_components() -> None:
    found = whitening([VECTORS], 1e-9).of(VECTORS)
    components = PCA(whiten=True).fit_transform(VECTORS.astype(np.float64))
    scale = np.sqrt(len(VECTORS) / (len(VECTORS) - 1))
    np.testing.assert_allclose(found @ found.T, scale**2 * components @ components.T, atol=1e-2)
    np.testing.assert_allclose(np.cov(found.T, bias=True), np.eye(6), atol=1e-3)


@pytest.mark.parametrize("shrinkage", [0.01, 0.1, 0.5, 1.0])
def test_planted_variances_are_divided_by_what_the_shrinkage_leaves(shrinkage: float) -> None:
    """Variances 9, 1 and 0 on three axes: mean 10 / 3."""
    axis = np.array([1.0, -1.0])
    points = np.stack(np.meshgrid(3 * axis, axis, 0 * axis), axis=-1).reshape(-1, 3).astype(np.float32)
    found = whitening([points + 7], shrinkage).of(points + 7)
    variances = np.array([9.0, 1.0, 0.0])
    left = (1 - shrinkage) * variances + shrinkage * 10 / 3
    np.testing.assert_allclose(np.cov(found.T, bias=True), np.diag(variances / left), atol=1e-5)


def test_what_is_unknown_stays_unknown_and_what_is_all_equal_becomes_nothing() -> None:
    some = VECTORS[:4].copy()
    some[1] = np.nan
    for fitted in (zscore([VECTORS]), whitening([VECTORS], 0.1)):
        found = fitted.of(some)
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2, 3]]).all()
        assert found.dtype == np.float32
    equal = np.broadcast_to(VECTORS[:1], (20, 6))
    for fitted in (zscore([equal]), whitening([equal], 0.1)):
        assert not fitted.of(equal).any()


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="at least one vector without NaN"):
        zscore([np.full((3, 2), np.nan, np.float32)])
