"""Rank correlation over layers."""

import math

import numpy as np
import pytest

from layerboard.tasks.statistics.rank_correlation import rank_correlation

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
