"""Ranges of ranks: known orders of planted scores, exact ties, layers that were chosen, and few units."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from layerboard.tasks.statistics.draws import quantile_of, uncertainty_of
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
def test_neighbours_are_told_apart_where_tukeys_range_says_so(rivals):
    n = 2000
    values = whitened(n, rivals)
    bound = stats.studentized_range.ppf(0.95, rivals, np.inf) * np.sqrt(1 / n)
    for shift, last in ((0.94, [1, rivals]), (1.06, [rivals, rivals])):
        moved = values.copy()
        moved[:, -1] -= shift * bound
        assert rank_ranges(means(moved), draws=20_000)[-1].tolist() == last


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
    assert rank_ranges(means(whitened(50, 2) - [0, 9]), draws=10).tolist() == [[1, 2], [1, 2]]
    assert quantile_of(np.arange(18.0)) == np.inf
    assert quantile_of(np.arange(19.0)) == 18
    with pytest.raises(ValueError, match="expected 2 candidates, found 3"):
        rank_ranges(means(whitened(50, 2)), [0, 1, 2])
