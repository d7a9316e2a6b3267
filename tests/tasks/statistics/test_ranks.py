"""Ranges of ranks: known orders of planted scores, exact ties, layers that were chosen, and few units."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from layerboard.tasks.statistics.draws import ORDER_LEVEL, quantile_of, uncertainty_of
from layerboard.tasks.statistics.mcb import compare_with_best
from layerboard.tasks.statistics.ranks import rank_ranges
from tests.tasks.statistics.units import percent as hits
from tests.tasks.statistics.units import ratios as means
from tests.tasks.statistics.units import whitened


def test_what_is_far_apart_has_one_rank_each_and_equals_have_all():
    values = whitened(400, 4)
    assert rank_ranges(means(values)).tolist() == [[1, 4]] * 4
    for order in permutations(range(4)):
        assert rank_ranges(means(values - np.array(order))).tolist() == [[place + 1] * 2 for place in order]
    assert rank_ranges(means(values - [0, 0, 1, 1])).tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]


def test_identical_scores_share_all_their_ranks():
    values = whitened(100, 2)
    same = np.concatenate([values, values[:, :1]], axis=1) - [0, 2, 0]
    assert rank_ranges(means(same)).tolist() == [[1, 2], [3, 3], [1, 2]]


@pytest.mark.parametrize("rivals", [2, 5])
def test_behind_the_best_neighbours_are_told_apart_where_tukeys_range_says_so(rivals):
    n = 2000
    values = whitened(n, rivals + 1)
    values[:, 0] += 1
    bound = stats.studentized_range.ppf(ORDER_LEVEL, rivals, np.inf) * np.sqrt(1 / n)
    for shift, last in ((0.94, [2, rivals + 1]), (1.06, [rivals + 1, rivals + 1])):
        moved = values.copy()
        moved[:, -1] -= shift * bound
        ranges = rank_ranges(means(moved), draws=20_000).tolist()
        assert (ranges[0], ranges[-1]) == ([1, 1], last)


def random_columns(number):
    """Scores of layers of four backbones in so many columns: hits, and values that are no hits."""
    for seed in range(number):
        g = np.random.default_rng(seed)
        shift = g.choice([0.1, 0.4, 1.0]) * g.normal(size=8)
        values = g.normal(size=(g.integers(6, 120), 8)) + shift
        yield hits(values > 0) if seed % 2 else means(values)


def test_the_first_rank_belongs_to_exactly_those_that_may_be_the_best():
    owner, first_ranks = np.arange(8) // 2, list[int]()
    for measured in random_columns(40):
        may_be_best = {*owner[compare_with_best(measured).maybe]}
        ranges = rank_ranges(measured, owner)
        assert {*np.flatnonzero(ranges[:, 0] == 1)} == may_be_best
        assert (ranges[:, 0] <= ranges[:, 1]).all()
        assert (np.sort(ranges[:, 0]) <= np.arange(1, 5)).all()  # some order of all agrees with them
        assert (np.sort(ranges[:, 1]) >= np.arange(1, 5)).all()
        first_ranks.append(len(may_be_best))
    assert {*first_ranks} == {1, 2, 3, 4}


def test_all_errors_together_are_as_rare_as_the_level_says():
    """Five equal candidates, whose order is that of their numbers, and a worse one."""
    wrong = 0
    for seed in range(100):
        values = np.random.default_rng(seed).normal(size=(60, 6)) - [0, 0, 0, 0, 0, 0.4]
        first, last = rank_ranges(means(values), seed=seed, draws=500).T
        rank = np.arange(1, 7)
        wrong += ((first > rank) | (last < rank)).any()
    assert wrong <= 11  # 5 % and three standard errors


def test_a_backbone_is_as_good_as_its_best_layer():
    values = whitened(400, 6) - [0, 3, 3, 1, 1, 1]
    assert rank_ranges(means(values), [0, 0, 0, 1, 1, 1]).tolist() == [[1, 1], [2, 2]]
    # one layer of the second is as good as the best of the first
    values = whitened(400, 6) - [0, 3, 3, 1, 0, 1]
    assert rank_ranges(means(values), [0, 0, 0, 1, 1, 1]).tolist() == [[1, 2], [1, 2]]
    # not for its layers alone: each beats one layer of the other
    values = whitened(400, 4) - [0, 2, 1, 1]
    assert rank_ranges(means(values), [0, 1, 1, 0]).tolist() == [[1, 1], [2, 2]]


def test_a_few_differing_answers_show_nothing():
    values = np.ones((150, 2))
    values[:5, 1] = 0  # five against none: one sided p is 1 in 32
    assert rank_ranges(hits(values)).tolist() == [[1, 2], [1, 2]]
    values[:12, 1] = 0
    assert rank_ranges(hits(values)).tolist() == [[1, 1], [2, 2]]
    error, _ = uncertainty_of(hits(np.ones((50, 2)))).pairs()
    assert error.ravel() == pytest.approx([0, 2 * np.sqrt(2), 2 * np.sqrt(2), 0])


def test_too_few_units_or_draws_have_no_ranks():
    assert rank_ranges(means([[1.0, 2.0]])) is None
    assert rank_ranges(means(whitened(50, 3) - [0, 9, 18]), draws=5).tolist() == [[1, 1], [2, 3], [2, 3]]
    assert quantile_of(np.arange(18.0)) == np.inf
    assert quantile_of(np.arange(19.0)) == 18
