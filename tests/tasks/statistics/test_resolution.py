"""Power: the smallest difference that a sample shows, and how many units would show one."""

import math

import numpy as np
import pytest
from scipy import stats

from layerboard.tasks.statistics.resolution import enough_units, smallest_difference
from tests.tasks.statistics.units import ratios as means
from tests.tasks.statistics.units import whitened

BOTH = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)  # 2.80 standard errors


def test_two_scores_are_told_apart_as_by_a_one_sided_t_test():
    for n in (10, 2000):
        error = np.sqrt(2 / n)
        expected = (stats.t.ppf(0.95, n - 1) + stats.norm.ppf(0.8)) * error
        found = smallest_difference(means(whitened(n, 2)), draws=100_000)
        assert found == pytest.approx(expected, rel=0.02)


def test_among_many_it_takes_dunnetts_critical_value():
    values = whitened(3000, 8)
    worst = stats.dunnett(*values.T[1:], control=values[:, 0], alternative="less")
    critical = -worst.confidence_interval(0.95).high.min() / np.sqrt(2 / 3000)
    expected = (abs(critical) + stats.norm.ppf(0.8)) * np.sqrt(2 / 3000)
    assert smallest_difference(means(values), draws=50_000) == pytest.approx(expected, rel=0.02)


def test_it_halves_with_four_times_the_units_and_ignores_what_is_far_below():
    values = whitened(500, 4)
    small = smallest_difference(means(np.tile(values, (4, 1))))
    assert small == pytest.approx(smallest_difference(means(values)) / 2, rel=0.03)
    far = np.concatenate([values, 50 * whitened(500, 1, seed=1) - 500], axis=1)
    assert smallest_difference(means(far)) == pytest.approx(smallest_difference(means(values)), rel=0.1)


def test_nothing_is_resolved_without_a_rival_or_with_one_unit():
    assert math.isnan(smallest_difference(means(whitened(50, 1))))
    assert math.isnan(smallest_difference(means([[1.0, 2.0]])))
    assert math.isnan(smallest_difference(means(np.ones((9, 2)))))


@pytest.mark.parametrize("true", [0.3, 1.0])
def test_so_many_units_show_the_difference_in_80_percent(true):
    enough = enough_units(true, 0.5, 100)
    assert enough.units == pytest.approx(100 * (BOTH * 0.5 / true) ** 2)
    random = np.random.default_rng(0)
    error = 0.5 * np.sqrt(100 / enough.units)
    shown = random.normal(true, error, 100_000) > stats.norm.ppf(0.975) * error
    assert shown.mean() == pytest.approx(0.8, abs=0.01)


def test_the_range_is_that_of_the_interval():
    enough = enough_units(1.0, 0.25, 100)
    ends = 1 + np.array([1, -1]) * stats.norm.ppf(0.975) * 0.25
    assert enough[1:] == pytest.approx(100 * (BOTH * 0.25 / ends) ** 2)
    assert enough_units(0.4, 0.25, 100).most == math.inf  # the interval holds 0
    assert enough_units(0.0, 0.25, 100).units == math.inf
