from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from layerboard.tasks.statistics.best_set import best_set, holm
from layerboard.tasks.statistics.weighted import Partitions, Ratios


def zeros(n):
    return np.zeros(n, np.int64)


def ratios(totals, counts=None, group=None, stratum=None):
    totals = np.asarray(totals, float)
    n = len(totals)
    counts = np.ones(n) if counts is None else np.asarray(counts, float)
    return Ratios(totals, counts, *(zeros(n) if ids is None else np.asarray(ids) for ids in (group, stratum)))


def clusterings(g, wrong, count=240, starts=1):
    labels = g.integers(6, size=count)
    noise = g.random((len(wrong), starts, count)) < np.asarray(wrong)[:, None, None]
    clusters = np.where(noise, g.integers(6, size=noise.shape), labels)
    return Partitions(labels, clusters, ("purity",), np.arange(count) // 2, zeros(count // 2))


def whitened(n, scores, seed=0):
    """Columns of mean 0 whose sample covariance is exactly the identity."""
    values = np.random.default_rng(seed).normal(size=(n, scores))
    values -= values.mean(axis=0)
    return np.linalg.qr(values)[0] * np.sqrt(n - 1)


@pytest.mark.parametrize("rivals", [2, 12])
def test_rows_of_equal_layers_rarely_lose_one(rivals):
    """The paired test against the best of the row finds a difference in four of five rows of twelve."""
    lost = 0
    for seed in range(300):
        g = np.random.default_rng(seed)
        values = g.normal(size=(60, 1)) + g.normal(size=(60, rivals))
        lost += not best_set(ratios(values), seed=seed, draws=500).all()
    assert lost / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_columns_of_equal_backbones_rarely_lose_one_though_their_layers_were_chosen():
    """One of three has a single good layer, and so less luck than those with twelve."""
    owner, lost = np.repeat(np.arange(3), 8), 0
    worse = np.where((owner == 0) & (np.arange(24) > 0), 3.0, 0.0)
    for seed in range(200):
        values = np.random.default_rng(seed).normal(size=(80, 24)) - worse
        lost += not best_set(ratios(values), owner.tolist(), seed=seed, draws=500).all()
    assert lost / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_two_are_told_apart_as_by_the_paired_t_test():
    for n in (6, 30, 200):
        for shift in (0.9, 1.1):
            values = whitened(n, 2)
            error = np.sqrt(2 / n)
            values[:, 1] -= shift * error * stats.t.ppf(0.975, n - 1)
            assert best_set(ratios(values)).tolist() == [True, shift < 1], n


@pytest.mark.parametrize("rivals", [3, 6])
def test_the_last_of_several_is_out_where_tukeys_range_says_so(rivals):
    values, n = whitened(2000, rivals), 2000
    bound = stats.studentized_range.ppf(0.95, rivals, np.inf) / np.sqrt(2) * np.sqrt(2 / n)
    for shift in (0.95, 1.05):
        moved = values.copy()
        moved[:, -1] -= shift * bound
        assert best_set(ratios(moved)).tolist() == [True] * (rivals - 1) + [shift < 1]


def test_differences_reach_less_far_once_others_are_out():
    values, n = whitened(2000, 12), 2000
    values[:, 2:] -= 1.0
    two = stats.norm.ppf(0.975) * np.sqrt(2 / n)
    values[:, 1] -= 1.05 * two  # apart from one rival, not in a crowd of twelve
    assert best_set(ratios(values)).tolist() == [True] + [False] * 11


def test_truly_worse_layers_are_told_apart():
    apart = []
    for seed in range(40):
        g = np.random.default_rng(seed)
        numbers = np.sqrt(0.8) * g.normal(size=(500, 1)) + np.sqrt(0.2) * g.normal(size=(500, 7))
        shares = np.array([0.7] + [0.6] * 6)
        inside = best_set(ratios(numbers < stats.norm.ppf(shares)), seed=seed)
        assert inside[0]
        apart.append(1 - inside[1:].mean())
    assert np.mean(apart) > 0.95


def test_few_draws_make_the_set_larger_never_smaller():
    """The bound is a draw: with 19 the furthest one, with fewer there is none."""
    values = whitened(40, 2) + np.array([0.0, 0.8])
    assert best_set(ratios(values), draws=18).tolist() == [True, True]
    assert best_set(ratios(values), draws=19).tolist() == [False, True]
    lost = 0
    for seed in range(400):
        g = np.random.default_rng((seed, 1))
        lost += not best_set(ratios(g.normal(size=(200, 2))), seed=seed, draws=19).all()
    assert lost / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_strata_and_clusters_count():
    """Differences that lie between strata say nothing about a sample with so many of each."""
    g = np.random.default_rng(0)
    stratum = np.arange(60) % 3
    base = g.normal(size=(60, 1)) + 0.1 * g.normal(size=(60, 2))
    base[:, 1] += 0.1 + 5.0 * (stratum - 1)
    assert best_set(ratios(base, stratum=stratum)).tolist() == [False, True]
    assert best_set(ratios(base)).all()
    values = g.normal(size=(40, 2)) + np.array([0.0, 0.6])
    many = np.repeat(values, 9, axis=0)
    assert best_set(ratios(many)).tolist() == [False, True]
    together = ratios(9 * values, np.full(40, 9))
    assert best_set(together).tolist() == best_set(ratios(values)).tolist()


def test_partitions_hold_equal_layers_and_lose_worse_ones():
    lost, apart = 0, []
    for seed in range(40):
        g = np.random.default_rng(seed)
        lost += not best_set(clusterings(g, [0.4] * 4), seed=seed, draws=200).all()
        inside = best_set(clusterings(g, [0.2, 0.45, 0.45], starts=10), seed=seed, draws=200)
        assert inside[0]
        apart.append(1 - inside[1:].mean())
    assert lost <= 6
    assert np.mean(apart) > 0.9


def test_equal_columns_are_all_inside_and_what_never_varies_is_out():
    column = np.random.default_rng(0).random(50)
    values = np.stack([column - 0.2, column, column, column - 1e-16], axis=1)
    assert best_set(ratios(values)).tolist() == [False, True, True, True]
    same = clusterings(np.random.default_rng(0), [0.4, 0.4])
    same = replace(same, starts=same.starts[[0, 0]])
    assert best_set(same).tolist() == [True, True]


def test_a_set_is_fixed_by_its_seed_and_follows_the_order_of_the_scores():
    values = np.random.default_rng(1).normal(size=(40, 5)) + 0.25 * np.arange(5)
    found = best_set(ratios(values))
    assert (best_set(ratios(values)) == found).all()
    assert found.tolist() == best_set(ratios(values[:, ::-1]))[::-1].tolist()
    assert best_set(ratios(values * 100 + 7)).tolist() == found.tolist()


def test_layers_of_one_candidate_do_not_compete():
    values = whitened(400, 3) + np.array([0.0, 5.0, 4.9])
    assert best_set(ratios(values), [0, 1, 1]).tolist() == [False, True]
    assert best_set(ratios(values), [1, 1, 0]).tolist() == [True, True]
    assert best_set(ratios(values), [0, 0, 0]).tolist() == [True]


@pytest.mark.parametrize(
    "measured",
    [
        ratios(np.zeros((0, 2))),
        ratios(np.zeros((5, 2)), np.zeros(5)),
        ratios(np.eye(3)[:, :2], stratum=[0, 1, 2]),
        Partitions(zeros(4), np.zeros((2, 1, 4), np.int64), ("purity",), zeros(4), zeros(1)),
    ],
    ids=["no unit", "no count", "strata of one", "one image"],
)
def test_too_few_units_have_no_set(measured):
    assert best_set(measured) is None


def test_refuses_wrong_input():
    measured = ratios(np.eye(4)[:, :2])
    with pytest.raises(ValueError, match="expected 2 candidates"):
        best_set(measured, [0])


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
