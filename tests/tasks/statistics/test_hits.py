from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from layerboard.tasks.statistics.uncertainty import hit_intervals, intervals
from layerboard.tasks.statistics.weighted import Ratios, Trials


def zeros(n):
    return np.zeros(n, np.int64)


def hits(right, held=None, stratum=None, value=1.0):
    """Numbers of hits of each unit, by how many trials it holds."""
    right = np.asarray(right, float)
    right = right[:, None] if right.ndim == 1 else right
    held = np.ones(len(right)) if held is None else np.asarray(held, float)
    stratum = zeros(len(right)) if stratum is None else np.asarray(stratum)
    trials = Trials(held, np.full(right.shape[1], value))
    return Ratios(value * right, held, zeros(len(right)), stratum, trials)


def every(n):
    """All numbers of hits of n independent trials, a score each."""
    return hits(np.arange(n)[:, None] < np.arange(n + 1))


@pytest.mark.parametrize("n", [5, 20, 50])
def test_independent_hits_have_the_exact_interval(n):
    low, high = hit_intervals(every(n))
    for count in range(n + 1):
        expected = stats.binomtest(count, n).proportion_ci(0.95, "exact")
        assert (low[count], high[count]) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("n", [20, 50, 100, 200])
def test_independent_hits_are_covered_everywhere(n):
    low, high = hit_intervals(every(n))
    for share in np.linspace(0.01, 0.99, 99):
        inside = (low <= share) & (share <= high)
        assert stats.binom.pmf(np.arange(n + 1), n, share)[inside].sum() >= 0.95 - 1e-9


def test_all_right_is_not_certain():
    low, high = intervals(hits(np.ones(50), value=100.0))
    assert high[0] == 100
    assert 92 < low[0] < 94
    low, high = intervals(hits(np.zeros(50), value=100.0))
    assert low[0] == 0
    assert 6 < high[0] < 8


def test_of_clusters_that_are_all_right_only_the_clusters_count():
    low, _ = hit_intervals(hits(np.full(40, 5), np.full(40, 5)))
    assert low[0] < 1 - 0.9 * (1 - hit_intervals(hits(np.ones(40)))[0][0])
    assert low[0] == pytest.approx(hit_intervals(hits(np.ones(40)))[0][0], abs=0.01)


def test_items_that_are_alike_within_clusters_are_worth_one():
    one = hits(np.arange(80) % 4 > 0)
    many = replace(
        one, totals=6 * one.totals, counts=6 * one.counts, trials=Trials(np.full(80, 6.0), np.ones(1))
    )
    np.testing.assert_allclose(hit_intervals(many), hit_intervals(one), atol=0.004)


def test_items_that_are_independent_within_clusters_count_nearly_each():
    g = np.random.default_rng(0)
    right = g.binomial(4, 0.7, (300, 1))
    low, high = hit_intervals(hits(right, np.full(300, 4)))
    expected = stats.binomtest(int(right.sum()), 1200).proportion_ci(0.95, "exact")
    assert (high - low)[0] == pytest.approx(expected.high - expected.low, rel=0.12)


@pytest.mark.parametrize("share", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("weights", ["items", "clusters", "strata"])
def test_clustered_hits_are_covered(share, weights):
    """Of 40 clusters of 1 to 7 items that are alike by 0.4, in means of items, clusters or strata."""
    covered = 0
    for seed in range(300):
        g = np.random.default_rng(seed)
        held = g.integers(1, 8, 40)
        right = g.binomial(held, g.beta(1.5 * share, 1.5 * (1 - share), 40)).astype(float)[:, None]
        groups = np.arange(40) % 4 if weights == "strata" else zeros(40)
        count = held.astype(float)
        trials = Trials(count, np.ones(1))
        if weights == "clusters":
            right, count = right / held[:, None], np.ones(40)
        low, high = hit_intervals(Ratios(right, count, groups, groups, trials))
        covered += low[0] <= share <= high[0]
    assert covered / 300 >= 0.93


def test_other_scores_beside_hits_keep_their_bootstrap():
    g = np.random.default_rng(0)
    values = np.stack([g.random(60) < 0.9, g.random(60)], axis=1).astype(float)
    mixed = Ratios(values, np.ones(60), zeros(60), zeros(60), Trials(np.ones(60), np.array([1.0, np.nan])))
    ends = np.stack(intervals(mixed))
    assert ends[:, 1] == pytest.approx(np.stack(intervals(replace(mixed, trials=None)))[:, 1])
    assert ends[:, 0].tolist() == [float(end[0]) for end in hit_intervals(hits(values[:, 0]))]


def test_too_few_units_have_no_interval():
    for measured in (hits(np.ones(1)), hits(np.ones(3), stratum=[0, 1, 2]), hits(np.zeros(0))):
        assert np.isnan(hit_intervals(measured)).all()


def test_refuses_wrong_input():
    measured = hits(np.ones(5))
    with pytest.raises(ValueError, match="scores of hits"):
        hit_intervals(replace(measured, trials=None))
    with pytest.raises(ValueError, match="expected trials"):
        replace(measured, trials=Trials(np.ones(4), np.ones(1)))
