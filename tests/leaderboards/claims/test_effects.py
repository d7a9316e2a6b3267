"""Effects have the intervals that they promise, alone and together."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp, ttest_ind

from layerboard.leaderboards.claims.effects import (
    Effect,
    contrast,
    largest,
    least,
    mean_effect,
    orders,
    permuted,
    share_above,
)

GENERATOR = np.random.default_rng(5)
FIRST, SECOND = GENERATOR.normal(1, 1, 9), GENERATOR.normal(0, 3, 6)


def test_means_and_contrasts_have_the_intervals_of_student_and_welch() -> None:
    ends = ttest_1samp(FIRST, 0).confidence_interval(0.95)
    found = mean_effect([*FIRST, math.nan], "layers")
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.unit == "9 layers"
    ends = ttest_ind(FIRST, SECOND, equal_var=False).confidence_interval(0.95)
    found = contrast(FIRST, SECOND, "heads")
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.unit == "9 + 6 heads"


def test_one_unit_has_no_interval_and_equal_units_have_a_point() -> None:
    assert math.isnan(mean_effect([1.0], "layers").low)
    assert math.isnan(contrast([1.0], FIRST, "layers").high)
    found = mean_effect([2.0, 2.0], "layers")
    assert (found.low, found.high) == (2, 2)


@pytest.mark.parametrize(("count", "total"), [(0, 36), (7, 36), (36, 36)])
def test_shares_have_exact_intervals(count: int, total: int) -> None:
    ends = binomtest(count, total).proportion_ci(0.95, "exact")
    found = share_above(count, total, 0.05, "heads")
    assert (found.low + 0.05, found.high + 0.05) == pytest.approx((ends.low, ends.high))


def test_a_widened_interval_is_that_of_several_statements() -> None:
    ends = ttest_1samp(FIRST, 0).confidence_interval(1 - 0.05 / 7)
    found = mean_effect(FIRST, "layers").widened(7)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))


def test_the_least_holds_without_correction_and_fails_with_it() -> None:
    strong, weak = Effect(3, 2, 4, "images", "a"), Effect(1, 0.1, 1.9, "images", "b")
    found = least([strong, weak])
    assert (found.value, found.low, found.subject) == (1, 0.1, "b")
    assert found.high == weak.widened(2).high > weak.high
    assert math.isnan(least([strong, Effect(0, math.nan, math.nan, "pair")]).low)


def test_the_largest_is_corrected() -> None:
    strong, weak = Effect(3, 2, 4, "images", "a"), Effect(1, 0.1, 1.9, "images", "b")
    found = largest([strong, weak])
    assert (found.value, found.low, found.high) == (3, strong.widened(2).low, 4)
    assert largest([weak] * 100).low < 0 < weak.low


def test_the_least_and_the_largest_of_nothing_are_seldom_above_0() -> None:
    """Of sets of five effects: `least` if one is 0, `largest` if all are, in at most 2.5 %."""
    values = GENERATOR.normal(0, 1, (4000, 5, 12))
    lows = [largest([mean_effect(row, "") for row in rows]).low for rows in values[:1000]]
    assert np.mean(np.array(lows) > 0) <= 0.025 + 2 * 0.005
    lows = [
        least([mean_effect(row + 3 * (place > 0), "") for place, row in enumerate(rows)]).low
        for rows in values[1000:]
    ]
    assert 0.015 <= np.mean(np.array(lows) > 0) <= 0.025 + 2 * 0.003


def test_exchange_is_exact() -> None:
    """Above 0 if and only if at most 25 of the 1,000 orders, the observed one included, are as high."""
    shuffled = np.arange(999.0)
    assert permuted(974.5, shuffled, "").low > 0
    assert permuted(973.5, shuffled, "").low <= 0
    assert permuted(24.5, shuffled, "").high >= 0
    assert permuted(23.5, shuffled, "").high < 0
    assert permuted(5.0, np.array([5.0, 1.0, 1.0]), "").low == 0


def test_orders_are_the_same_in_each_call() -> None:
    first = orders(7, 3)
    assert (np.sort(first, axis=1) == np.arange(7)).all()
    assert (first == orders(7, 3)).all()
    assert (first != orders(7, 4)).any()
