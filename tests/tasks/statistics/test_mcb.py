from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from layerboard.tasks.statistics.mcb import compare_groups, compare_with_best, holm
from layerboard.tasks.statistics.uncertainty import differences
from layerboard.tasks.statistics.weighted import Partitions, Trials
from tests.tasks.statistics.units import percent as hits
from tests.tasks.statistics.units import ratios, whitened, zeros


def clusterings(g, wrong, count=240, starts=1):
    labels = g.integers(6, size=count)
    noise = g.random((len(wrong), starts, count)) < np.asarray(wrong)[:, None, None]
    clusters = np.where(noise, g.integers(6, size=noise.shape), labels)
    return Partitions(labels, clusters, ("purity",), np.arange(count) // 2, zeros(count // 2))


def maybe(measured, seed=0):
    return compare_with_best(measured, seed).maybe.tolist()


def nested(n, lost):
    """All right, and layers that lose the first so many."""
    return np.stack([np.arange(n) >= part for part in lost], axis=1)


def test_two_are_told_apart_as_by_the_paired_t_test_and_the_loss_is_its_end_with_one_more_unit():
    for n in (6, 30, 200):
        for shift in (0.9, 1.1):
            values = whitened(n, 2)
            reach = np.sqrt(2 / n) * stats.t.ppf(0.975, n - 1)
            values[:, 1] -= shift * reach
            found = compare_with_best(ratios(values))
            assert found.maybe.tolist() == [True, shift < 1], n
            apart = values[:, 0] - values[:, 1]
            largest = np.abs(apart - apart.mean()).max() / np.sqrt(n * (n - 1))
            np.testing.assert_allclose(found.loss[1], (1 + shift) * reach + largest)
            np.testing.assert_allclose(found.loss[0], (1 - shift) * reach + largest if shift < 1 else 0)


def test_a_loss_allows_for_a_failure_in_one_more_unit():
    """Three layers that are nearly the same; one fails in a video, and any of them may in another video."""
    values = np.repeat(np.random.default_rng(0).normal(70, 5, (12, 1)), 3, axis=1)
    values += 0.01 * np.random.default_rng(1).normal(size=values.shape)
    few = compare_with_best(ratios(values)).loss
    assert few.max() < 0.1
    values[0, 2] -= 60
    assert (compare_with_best(ratios(values)).loss > 60 * 11 / 12 / 12).all()


@pytest.mark.parametrize("rivals", [3, 6])
def test_the_last_of_several_is_out_where_dunnetts_one_sided_quantile_says_so(rivals):
    values, n = whitened(4000, rivals), 4000
    draws = np.random.default_rng(1).normal(size=(400_000, rivals))
    bound = np.quantile((draws[:, :-1] - draws[:, -1:]).max(axis=1), 0.95) / np.sqrt(2) * np.sqrt(2 / n)
    for shift in (0.94, 1.06):
        moved = values.copy()
        moved[:, -1] -= shift * bound
        assert maybe(ratios(moved)) == [True] * (rivals - 1) + [shift < 1]


def test_hopeless_rivals_do_not_keep_a_layer_in():
    values, n = whitened(2000, 12), 2000
    values[:, 2:] -= 1.0
    values[:, 1] -= 1.05 * stats.norm.ppf(0.975) * np.sqrt(2 / n)
    assert maybe(ratios(values)) == [True] + [False] * 11


def test_layers_far_below_do_not_move_a_loss_by_chance():
    values = np.random.default_rng(0).normal(70, 5, (12, 6))
    more = np.concatenate([values, values[:, :3] - 60], axis=1)
    few, many = (compare_with_best(ratios(each)).loss for each in (values, more))
    np.testing.assert_allclose(many[:6], few, rtol=1e-9)


def test_strata_and_clusters_count():
    """Differences that lie between strata say nothing about a sample with so many of each."""
    g = np.random.default_rng(0)
    stratum = np.arange(60) % 3
    base = g.normal(size=(60, 1)) + 0.1 * g.normal(size=(60, 2))
    base[:, 1] += 0.1 + 5.0 * (stratum - 1)
    assert maybe(ratios(base, stratum=stratum)) == [False, True]
    assert all(maybe(ratios(base)))
    values = g.normal(size=(40, 2)) + np.array([0.0, 0.6])
    many = np.repeat(values, 9, axis=0)
    assert maybe(ratios(many)) == [False, True]
    together = ratios(9 * values, np.full(40, 9))
    assert maybe(together) == maybe(ratios(values))


def test_equal_columns_are_all_inside_and_what_never_varies_is_out():
    column = np.random.default_rng(0).random(50)
    values = np.stack([column - 0.2, column, column, column - 1e-16], axis=1)
    found = compare_with_best(ratios(values))
    assert found.maybe.tolist() == [False, True, True, True]
    np.testing.assert_allclose(found.loss, [0.2, 0, 0, 0], atol=1e-12)
    same = clusterings(np.random.default_rng(0), [0.4, 0.4])
    same = replace(same, starts=same.starts[[0, 0]])
    assert maybe(same) == [True, True]


def test_a_statement_is_fixed_by_its_seed_and_follows_the_order_and_the_unit_of_the_scores():
    values = np.random.default_rng(1).normal(size=(40, 5)) + 0.25 * np.arange(5)
    found, again, scaled = (compare_with_best(ratios(each)) for each in (values, values, 100 * values + 7))
    np.testing.assert_array_equal(found.loss, again.loss)
    assert found.maybe.tolist() == scaled.maybe.tolist()
    np.testing.assert_allclose(scaled.loss, 100 * found.loss)
    assert found.maybe.tolist() == maybe(ratios(values[:, ::-1]))[::-1]


@pytest.mark.parametrize("n", [20, 60, 300])
def test_what_a_layer_may_lose_without_a_differing_image_is_an_exact_bound(n):
    """As Clopper and Pearson's of no losses among n, or a little more."""
    found = compare_with_best(hits(np.ones((n, 2))))
    exact = 100 * stats.beta.ppf(0.975, 1, n)
    assert found.maybe.all()
    assert (found.loss >= 0.98 * exact).all()
    assert (found.loss <= 1.35 * exact).all()


def test_a_loss_grows_with_every_image_that_is_lost_and_is_about_the_exact_bound():
    losses = [compare_with_best(hits(nested(300, [0, lost]))).loss[1] for lost in range(12)]
    assert (np.diff(losses) > 0).all()
    exact = [100 * stats.beta.ppf(0.975, lost + 1, 300 - lost) for lost in range(12)]
    assert (np.array(losses) >= 0.97 * np.array(exact)).all()
    assert (np.array(losses) <= 1.1 * np.array(exact)).all()


def test_a_few_lost_images_do_not_show_that_a_layer_is_worse():
    """By the exact sign test six of six are needed for 2.5 %, five for 5 %."""
    inside = [maybe(hits(nested(100, [0, lost])))[1] for lost in range(9)]
    assert inside == [True] * 6 + [False] * 3


def test_units_count_and_not_their_items():
    """Twenty patients of thirty photographs say as much as twenty photographs if none differs."""
    photos = hits(np.ones((20, 2)))
    patients = replace(
        photos,
        totals=30 * photos.totals,
        counts=np.full(20, 30.0),
        trials=Trials(np.full(20, 30.0), photos.trials.hit),
    )
    few, many = (compare_with_best(each).loss[1] for each in (photos, patients))
    assert many >= few > 15


def test_groups_of_one_are_the_paired_t_test():
    values = whitened(30, 2)
    values[:, 1] -= 0.5
    found = compare_groups(ratios(values), np.array([True, False]))
    reach = np.sqrt(2 / 30) * stats.t.ppf(0.975, 29)
    np.testing.assert_allclose(found[:3], [0.5, 0.5 - reach, 0.5 + reach], atol=0.05)
    p = 2 * stats.t.sf(0.5 / np.sqrt(2 / 30), 29)
    assert found.p == pytest.approx(p, rel=0.5)


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
def test_too_few_units_have_no_statement(measured):
    assert compare_with_best(measured) is None
    assert compare_groups(measured, np.array([True, False])) is None


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


def test_nothing_is_shown_to_be_the_best_while_another_may_be():
    """As marks, ranks and losses of one page: a layer loses nothing only where it alone may be the best."""
    alone = 0
    for seed in range(300):
        g = np.random.default_rng(seed)
        units, layers = int(g.integers(8, 400)), int(g.integers(2, 9))
        shared = g.random(units)[:, None]
        right = shared + g.normal(0, g.choice([0.02, 0.2]), (units, layers)) < g.uniform(0.3, 1, layers)
        found = compare_with_best(hits(right))
        assert ((found.loss == 0) == (found.maybe & (found.maybe.sum() == 1))).all(), seed
        alone += int((found.loss == 0).any())
    assert 50 < alone < 250


@pytest.mark.parametrize("units", [2, 3])
def test_no_share_loses_more_than_all_and_no_two_differ_by_more(units):
    """Means of percentages of a few videos; half of the layers fail in all but the first."""
    values = np.random.default_rng(units).uniform(60, 100, (units, 6))
    values[1:, 3:] /= 40
    measured, trials = ratios(values), Trials(np.full(units, 1e6), np.full(6, 100.0))
    shares = replace(measured, trials=trials)
    unlimited, losses = compare_with_best(measured).loss, compare_with_best(shares).loss
    assert unlimited.max() > 100
    np.testing.assert_allclose(losses, np.minimum(unlimited, 100))
    free, groups = (compare_groups(each, np.arange(6) < 3) for each in (measured, shares))
    assert (groups.low, groups.high) == (max(free.low, -100), min(free.high, 100))
    wide, paired = (differences(each, 5) for each in (measured, shares))
    assert wide.high.max() > 100
    np.testing.assert_array_equal(paired.high, np.minimum(wide.high, 100))
    np.testing.assert_array_equal(paired.low, np.maximum(wide.low, -100))
