"""Rank correlation over layers, and of true scores over backbones."""

import math

import numpy as np
import pytest

from layerboard.tasks.statistics.rank_correlation import rank_correlation, true_rank_correlation

NAN = math.nan
SCORES = np.array([10.0, 30.0, 50.0, 40.0])


def test_rank_correlation() -> None:
    assert rank_correlation(SCORES**3, SCORES) == 1
    assert rank_correlation(-SCORES, SCORES) == -1
    # ranks 1 2 3 4 against 1 2 4 3: 1 - 6 * 2 / (4 * 15)
    assert rank_correlation(np.arange(4.0), SCORES) == pytest.approx(0.8)
    assert rank_correlation(np.array([NAN, 1.0, 2.0, 3.0]), SCORES) == pytest.approx(0.5)
    for other in ([1.0, 1.0, 1.0, 1.0], [NAN, NAN, 1.0, 2.0]):
        assert math.isnan(rank_correlation(np.array(other), SCORES))


FIRST, SECOND = np.array([60.0, 50, 40, 30, 20, 10, 0]), np.array([50.0, 60, 40, 20, 30, 10, 0])


def test_without_noise_the_interval_is_that_of_bonett_and_wright() -> None:
    rho = 1 - 6 * 4 / (7 * 48)
    reach = 1.959964 * np.sqrt((1 + rho**2 / 2) / 4)
    found = true_rank_correlation(FIRST, SECOND, np.zeros((2, 2)))
    assert found == pytest.approx((rho, *np.tanh(np.arctanh(rho) + np.array([-reach, reach]))))
    perfect = true_rank_correlation(FIRST, FIRST, np.zeros((2, 2)))
    assert perfect.value == pytest.approx(1 - 6 / (7 * 48))
    assert perfect.low < 0.9


def test_noise_attenuates_and_what_it_shares_correlates() -> None:
    spread, plain = FIRST.var(ddof=1), true_rank_correlation(FIRST, SECOND, np.zeros((2, 2)))
    noisy = true_rank_correlation(FIRST, SECOND, np.diag([0.08, 0.08]) * spread)
    assert noisy == pytest.approx(np.clip(np.array(plain) / 0.92, -1, 1))
    shared = true_rank_correlation(FIRST, SECOND, 0.08 * np.ones((2, 2)) * spread)
    assert shared.value == pytest.approx((plain.value - 0.08) / 0.92)


def test_too_few_backbones_and_too_much_noise_have_no_correlation() -> None:
    nothing = np.zeros((2, 2))
    assert true_rank_correlation(FIRST[:5], SECOND[:5], nothing) is None
    assert true_rank_correlation(FIRST, np.ones(7), nothing) is None
    assert true_rank_correlation(FIRST, SECOND, np.diag([0.11, 0]) * FIRST.var(ddof=1)) is None
