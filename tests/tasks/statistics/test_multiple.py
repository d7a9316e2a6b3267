"""Corrected p-values, against numbers worked out by hand and by simulation."""

import numpy as np
import pytest

from layerboard.tasks.statistics.best_set import holm


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.04], [0.04]),
        ([0.02, np.nan, 0.03], [0.04, np.nan, 0.04]),
        ([], []),
    ],
)
def test_holm_by_hand(p: list[float], adjusted: list[float]) -> None:
    np.testing.assert_allclose(holm(np.array(p)), adjusted)


def test_a_wrong_rejection_is_as_rare_as_the_level_says() -> None:
    p = np.random.default_rng(0).random((4000, 8))
    wrong = np.mean([(holm(row) < 0.05).any() for row in p])
    assert 0.04 < wrong < 0.06
