import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from layerboard.tasks.metrics.partitions import ari, nmi, purity
from layerboard.tasks.statistics import weighted
from layerboard.tasks.statistics.uncertainty import (
    Uncertainty,
    choose_on_halves,
    differences,
    influence,
    intervals,
    share_intervals,
)
from layerboard.tasks.statistics.weighted import ClassRatios, Partitions, Ratios, Trials, halves
from tests.tasks.statistics.units import hits, ratios, zeros

INDICES = {"purity": purity, "NMI": nmi, "ARI": ari}


def tied(found):
    """Whether the interval holds 0."""
    return (found.low <= 0) & (found.high >= 0)


def grouped(seed=0, scores=4):
    """Units with several items each, units without any, groups across strata, a group that never counts."""
    g = np.random.default_rng(seed)
    counts = g.integers(0, 4, 60)
    group, stratum = g.integers(5, size=60), g.integers(3, size=60)
    counts[group == 3] = 0
    return Ratios(g.random((60, scores)) * counts[:, None], counts.astype(float), group, stratum)


def partitions(index="purity", scores=3, seed=0, starts=4, units=30, items=100):
    g = np.random.default_rng(seed)
    unit = np.concatenate([np.arange(units), g.integers(units, size=items - units)])
    labels = g.integers(6, size=len(unit))
    noise = g.random((scores, starts, len(unit))) < 0.4
    clusters = np.where(noise, g.integers(5, size=noise.shape), labels % 5)
    return Partitions(labels, clusters, (index,), unit, np.arange(units) % 2)


def by_hand(measured, weights):
    """Scores of one row of whole-number weights by loops."""
    result = []
    for score in range(measured.scores):
        means = []
        for group in sorted(set(measured.group)):
            members = np.flatnonzero(measured.group == group)
            total = sum(weights[u] * measured.totals[u, score] for u in members)
            count = sum(weights[u] * measured.counts[u] for u in members)
            if count:
                means.append(total / count)
        result.append(np.mean(means) if means else np.nan)
    return result


def test_ratios_equal_loops():
    measured = grouped()
    weights = np.random.default_rng(1).integers(0, 3, (20, 60)).astype(float)
    weights[0] = 0
    expected = [by_hand(measured, row) for row in weights]
    assert np.isnan(expected[0]).all()
    np.testing.assert_allclose(measured.evaluate(weights), expected, rtol=1e-12)
    np.testing.assert_allclose(measured.evaluate(), [by_hand(measured, np.ones(60))], rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(INDICES)), st.integers(1, 4), st.integers(1, 4))
def test_partitions_equal_those_of_repeated_items(seed, index, classes, clusters):
    g = np.random.default_rng(seed)
    labels, unit = g.integers(classes, size=12), g.integers(5, size=12)
    starts = g.integers(clusters, size=(2, 3, 12))
    measured = Partitions(labels, starts, (index,), unit, zeros(6))
    weights = g.integers(0, 3, (4, 6))
    found = measured.evaluate(weights.astype(float))
    for row, scores in zip(weights, found, strict=True):
        items = np.repeat(np.arange(12), row[unit])
        for score, value in enumerate(scores):
            if not len(items):
                assert np.isnan(value)
                continue
            expected = INDICES[index](labels[items], starts[score, 0, items])
            assert value == pytest.approx(expected, abs=1e-10)
    assert measured.evaluate()[0, 1] == pytest.approx(INDICES[index](labels, starts[1, 0]), abs=1e-10)


def test_blocks_of_tables_and_the_scale_of_weights_do_not_matter(monkeypatch):
    measured = {index: partitions(index) for index in INDICES}
    weights = np.random.default_rng(0).integers(0, 3, (50, 30)).astype(float)
    whole = {index: one.evaluate(weights) for index, one in measured.items()}
    monkeypatch.setattr(weighted, "CELLS", 1000)
    for index, one in measured.items():
        np.testing.assert_allclose(one.evaluate(weights), whole[index], rtol=1e-12)
        if index != "ARI":  # which counts pairs of items
            np.testing.assert_allclose(one.evaluate(np.full((1, 30), 2.5)), one.evaluate(), rtol=1e-12)


def shares(averaged, seed=0):
    """Pixels of five classes in 30 images, one of them shown nowhere but predicted."""
    g = np.random.default_rng(seed)
    shown = g.integers(0, 40, (30, 5)) * (g.random((30, 5)) < 0.5).astype(float)
    shown[:, 4] = 0
    part = np.stack([np.floor(shown * g.random((30, 5))) for _ in range(3)])
    return ClassRatios(part, shown + g.integers(0, 9, (3, 30, 5)), shown, np.arange(30) % 2, averaged)


@pytest.mark.parametrize("averaged", ["shown", "all"])
def test_ratios_of_classes_equal_those_of_repeated_images(averaged):
    measured = shares(averaged)
    weights = np.random.default_rng(1).integers(0, 3, (20, 30))
    weights[0] = 0
    found = measured.evaluate(weights.astype(float))
    assert np.isnan(found[0]).all()
    for row, values in zip(weights[1:], found[1:], strict=True):
        images = np.repeat(np.arange(30), row)
        classes = np.flatnonzero(measured.shown[images].sum(0)) if averaged == "shown" else slice(None)
        part, whole = (each[:, images][:, :, classes].sum(1) for each in (measured.part, measured.whole))
        np.testing.assert_allclose(values, np.divide(part, np.maximum(whole, 1)).mean(axis=1))


def test_classes_that_are_not_shown_count_0_where_they_are_averaged():
    shown = np.array([[4.0, 0, 0], [0, 2, 0]])
    part = np.array([[[2.0, 0, 0], [0, 1, 0]]])
    whole = np.array([[[4.0, 0, 1], [0, 2, 0]]])
    weights = np.array([[1.0, 1], [0, 1], [0, 0]])
    for averaged, expected in (
        ("shown", [0.5, 0.5, np.nan]),
        ("seen", [1 / 3, 0.5, np.nan]),
        ("all", [1 / 3, 0.5 / 3, np.nan]),
    ):
        found = ClassRatios(part, whole, shown, zeros(2), averaged).evaluate(weights)
        assert found[:, 0] == pytest.approx(expected, nan_ok=True)


EVERY_KIND = [grouped(), *(partitions(index) for index in INDICES), *map(shares, ("shown", "seen", "all"))]
KINDS = ["ratios", *INDICES, "shown", "seen", "all"]


@pytest.mark.parametrize("measured", EVERY_KIND[:4], ids=KINDS[:4])
def test_slopes_are_the_derivatives_of_the_scores(measured):
    units, step = len(measured.stratum), 1e-6
    up, down = (measured.evaluate(1 + sign * step * np.eye(units)) for sign in (1, -1))
    counting = measured.counts > 0
    expected = ((up - down) / (2 * step))[counting]
    if isinstance(measured, Partitions) and measured.indices == ("purity",):
        # where two classes are equally frequent in a cluster, the index has a kink
        assert np.isclose(measured.slopes()[counting], expected, atol=1e-7).mean() > 0.6
    else:
        np.testing.assert_allclose(measured.slopes()[counting], expected, atol=1e-7)


@pytest.mark.parametrize("averaged", ["shown", "seen", "all"])
def test_means_over_classes_have_the_jackknife_over_images(averaged):
    measured = replace(shares(averaged), stratum=zeros(30))
    measured.shown[:, 3] = 0
    measured.shown[7, 3] = 5  # which one image alone shows
    measured.shown[9] = measured.part[:, 9] = measured.whole[:, 9] = 0
    without = measured.evaluate(1 - np.eye(30)[measured.counts > 0])
    n, falls = len(without), without.mean(axis=0) - without
    assert n < 30
    uncertainty = Uncertainty.of(measured)
    np.testing.assert_allclose(uncertainty.covariance, (n - 1) / n * falls.T @ falls, rtol=1e-9)
    # images count by their shares of the classes
    weight = (measured.shown / np.maximum(measured.shown.sum(axis=0), 1)).sum(axis=1)
    np.testing.assert_allclose(uncertainty.errors()[1], weight.sum() ** 2 / (weight**2).sum() - 1)


def resampled(measured, resamples, seed):
    """Scores of units drawn with replacement within their strata, one by one."""
    g = np.random.default_rng(seed)
    rows = np.zeros((resamples, len(measured.stratum)))
    for members in (np.flatnonzero(measured.stratum == name) for name in set(measured.stratum)):
        for row in rows:
            np.add.at(row, g.choice(members, len(members)), 1)
    return measured.evaluate(rows)


@pytest.mark.parametrize(
    "measured",
    [
        ratios(np.random.default_rng(0).random((600, 2)) < 0.3),
        ratios(np.random.default_rng(1).random((400, 2)), stratum=np.arange(400) % 4 // 2),
        *(partitions(index, units=300, items=900) for index in INDICES),
    ],
    ids=["binary", "in strata", *INDICES],
)
def test_errors_are_those_of_the_bootstrap(measured):
    error = np.sqrt((influence(measured) ** 2).sum(axis=0))
    np.testing.assert_allclose(error, resampled(measured, 1500, 1).std(axis=0), rtol=0.12)


@pytest.mark.parametrize("n", [2, 8, 400])
def test_intervals_of_means_are_students(n):
    values = np.random.default_rng(3).exponential(size=n)
    low, high = intervals(ratios(values))
    expected = stats.t.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / np.sqrt(n))
    assert (low[0], high[0]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "measured", [grouped(), partitions(), partitions("NMI"), ratios(np.eye(2000)[:, :3])]
)
def test_a_score_does_not_depend_on_those_beside_it(measured):
    order = [2, 0, 1]
    if isinstance(measured, Ratios):
        moved = replace(measured, totals=measured.totals[:, order])
        alone = replace(measured, totals=measured.totals[:, [1]])
    else:
        moved = replace(measured, starts=measured.starts[order])
        alone = replace(measured, starts=measured.starts[[1]])
    base = np.stack(intervals(measured))
    np.testing.assert_allclose(np.stack(intervals(moved)), base[:, order], rtol=1e-9)
    np.testing.assert_allclose(np.stack(intervals(alone)), base[:, [1]], rtol=1e-9)
    found, there = differences(measured, 0), differences(moved, 1)
    np.testing.assert_allclose(there.low, found.low[order], atol=1e-12)
    np.testing.assert_allclose(there.p, found.p[order])


def test_chance_of_the_starts_is_the_spread_of_the_best_of_half_of_them():
    """By all ways to part the starts into halves; scores and their differences vary by it."""
    labels = np.arange(240) % 6
    g = np.random.default_rng(0)
    wrong = g.random((2, 6, 240)) < g.random((2, 6, 1)) / 2
    starts = np.where(wrong, g.integers(6, size=wrong.shape), labels)
    measured = Partitions(labels, starts, ("purity",), np.arange(240), zeros(240))
    expected = np.zeros(2)
    for layer, ranked in enumerate(starts):
        scores = [purity(labels, start) for start in ranked]
        gaps = [
            scores[min(half)] - scores[min(set(range(6)) - set(half))]
            for half in itertools.combinations(range(6), 3)
        ]
        expected[layer] = np.mean(np.square(gaps)) / 2
    found = [((rows**2).sum(axis=0), freedom) for rows, freedom in measured.chance()]
    np.testing.assert_allclose([variance for variance, _ in found], np.diag(expected))
    assert [freedom for _, freedom in found] == [5, 5]
    error, _ = Uncertainty.of(measured).errors(reference=0)
    alone, _ = Uncertainty.of(replace(measured, starts=starts[:, :1])).errors(reference=0)
    assert error[1] ** 2 == pytest.approx(alone[1] ** 2 + expected.sum())


def test_chance_of_draws_is_the_error_of_their_mean():
    g = np.random.default_rng(0)
    by_draw = g.random((3, 50, 2)) + np.array([0.0, 0.4, 0.1])[:, None, None]
    measured = replace(ratios(by_draw.mean(axis=0)), draws=by_draw.mean(axis=1))
    error, freedom = Uncertainty.of(measured).errors()
    parts = by_draw.mean(axis=0).var(axis=0, ddof=1) / 50, by_draw.mean(axis=1).var(axis=0, ddof=1) / 3
    np.testing.assert_allclose(error**2, sum(parts))
    np.testing.assert_allclose(freedom, sum(parts) ** 2 / (parts[0] ** 2 / 49 + parts[1] ** 2 / 2))
    paired, _ = Uncertainty.of(measured).errors(reference=0)
    gap = by_draw[:, :, 1] - by_draw[:, :, 0]
    expected = gap.mean(axis=0).var(ddof=1) / 50 + gap.mean(axis=1).var(ddof=1) / 3
    assert paired.tolist() == pytest.approx([0, np.sqrt(expected)])


def test_differences_are_those_of_the_paired_t_test():
    g = np.random.default_rng(2)
    for n in (3, 8, 200):
        layers = g.normal(size=(n, 1)) + g.normal(size=(n, 5)) * 0.4 + np.array([0, 0, 0.1, 0.2, 0.3])
        found = differences(ratios(layers), 0)
        expected = stats.ttest_rel(layers[:, 1:], layers[:, [0]])
        np.testing.assert_allclose(found.p[1:], expected.pvalue)
        np.testing.assert_allclose(found.value, (layers - layers[:, [0]]).mean(axis=0), atol=1e-12)
        for end, bound in zip((found.low, found.high), expected.confidence_interval(), strict=True):
            np.testing.assert_allclose(end[1:], bound)
        assert (tied(found) == (found.p >= 0.05)).all()


@pytest.mark.parametrize("index", sorted(INDICES))
def test_differences_of_partitions_are_paired(index):
    measured = partitions(index)
    same = replace(measured, starts=measured.starts[[0, 0, 1]])
    same.starts[1] = 4 - same.starts[0]  # other names of the same clusters
    found = differences(same, 0)
    assert (found.value[:2] == 0).all()
    assert found.low[0] == found.high[0] == 0
    assert found.low[1] < 0 < found.high[1]  # other starts might have done worse
    assert (found.p[:2] == 1).all()
    assert tied(found)[:2].all()
    assert found.low[2] < found.value[2] < found.high[2]
    low, high = intervals(same)
    assert found.high[2] - found.low[2] < (high - low)[[0, 2]].sum()


def test_constant_scores_have_no_width():
    counts = np.random.default_rng(0).integers(1, 7, 50)
    measured = ratios(np.stack([0.7 * counts, 0.1 * counts + 0.6 * counts], axis=1), counts)
    low, high = intervals(measured)
    assert (low == high).all()
    np.testing.assert_allclose(low, 0.7)
    paired = differences(measured, 0)
    assert paired.value.tolist() == paired.low.tolist() == paired.high.tolist() == [0, 0]
    assert tied(paired).all()
    assert (paired.p == 1).all()


def test_a_score_keeps_its_error_beside_those_of_much_larger_numbers():
    """The mean error of prices in one currency, and a billion times as much in another."""
    small = np.random.default_rng(0).normal(60, 9, (40, 2))
    alone, beside = ratios(small), ratios(np.column_stack([small, 1e9 * small]))
    np.testing.assert_allclose(np.stack(intervals(beside))[:, :2], np.stack(intervals(alone)), rtol=1e-9)
    for paired in (differences(alone, 0), differences(beside, 0)):
        assert paired.low[1] < paired.value[1] < paired.high[1]
        assert paired.p[1] == pytest.approx(differences(alone, 0).p[1])
    of_all, of_two = (Uncertainty.of(measured) for measured in (beside, alone))
    assert of_all is not None
    assert of_two is not None
    np.testing.assert_allclose(of_all.pairs()[0][:2, :2], of_two.pairs()[0], rtol=1e-6)


@pytest.mark.parametrize(
    "measured",
    [
        ratios(np.zeros((0, 2)), group=zeros(0), stratum=zeros(0)),
        ratios(np.zeros((5, 2)), np.zeros(5)),
        ratios(np.array([[1.0, 0], [0, 0]]), [1, 0]),
        ratios(np.eye(3)[:, :2], stratum=[0, 1, 2]),
        hits(np.ones((1, 2))),
        Partitions(zeros(0), np.zeros((2, 1, 0), np.int64), ("ARI",), zeros(0), zeros(3)),
        Partitions(zeros(4), np.zeros((2, 1, 4), np.int64), ("purity",), zeros(4), zeros(1)),
    ],
    ids=["no unit", "no count", "one unit", "strata of one", "one hit", "no item", "one image"],
)
def test_without_degrees_of_freedom_there_is_no_interval(measured):
    assert np.isnan(intervals(measured)).all()
    paired = differences(measured, 1)
    assert not tied(paired).any()
    assert np.isnan(paired.low).all()
    assert (np.isnan(paired.p) | ((paired.p == 1) & (paired.value == 0))).all()


def test_units_without_counts_change_neither_score_nor_interval():
    values = np.random.default_rng(0).random(12)
    plain = ratios(values)
    padded = ratios(np.append(values, np.zeros(30)), np.append(np.ones(12), np.zeros(30)))
    assert padded.evaluate() == plain.evaluate()
    np.testing.assert_allclose(intervals(padded), intervals(plain))


def test_halves_are_fixed_stratified_and_fair():
    stratum = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    mask = halves(stratum, 4000, seed=0)
    assert (mask == halves(stratum, 4000, seed=0)).all()
    assert (mask != halves(stratum, 4000, seed=1)).any()
    for name, sizes in {0: {0, 1}, 1: {1}, 2: {1, 2}, 3: {2}}.items():
        assert set(mask[:, stratum == name].sum(axis=1).tolist()) == sizes
    np.testing.assert_allclose(mask.mean(axis=0), 0.5, atol=0.03)
    # different units of a stratum of four are together in a third of the splits
    assert (mask[:, 6] == mask[:, 7]).mean() == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize("measured", EVERY_KIND, ids=KINDS)
def test_choice_equals_a_loop_over_splits_both_ways(measured):
    chosen, held_out = choose_on_halves(measured, splits=30, seed=2)
    picks, values = [], []
    (full,) = measured.evaluate()
    for half in halves(measured.stratum, 30, 2):
        one, other = (measured.evaluate(each.astype(float)[None])[0] for each in (half, ~half))
        for gap in ((one - other) / 2, (other - one) / 2):
            picks.append(int(np.argmax((full + gap).round(9))))
            values.append((full - gap)[picks[-1]])
    for layer in range(measured.scores):
        mine = [value for pick, value in zip(picks, values, strict=True) if pick == layer]
        assert chosen[layer] == len(mine) / 60
        np.testing.assert_allclose(held_out[layer], np.mean(mine) if mine else np.nan)


@pytest.mark.parametrize("measured", EVERY_KIND, ids=KINDS)
def test_a_held_out_score_is_never_above_the_best(measured):
    chosen, held_out = choose_on_halves(measured)
    assert np.nansum(chosen * held_out) <= measured.evaluate().max() + 1e-12


def test_equal_scores_choose_the_lower_layer():
    column = np.random.default_rng(0).random(301)
    chosen, _ = choose_on_halves(ratios(np.stack([column * 0.5] + [column] * 12, axis=1)))
    assert chosen.tolist() == [0, 1] + [0] * 11


def test_nothing_is_chosen_where_a_half_cannot_count():
    for measured in (ratios(np.ones((0, 2))), ratios(np.ones((4, 2)), [1, 0, 0, 0])):
        chosen, held_out = choose_on_halves(measured)
        assert np.isnan([*chosen, *held_out]).all()


def test_refuses_wrong_input():
    pixels = np.ones((1, 2, 3))
    for action, word in [
        (lambda: ratios([1, np.nan]), "finite"),
        (lambda: ratios([1, 1], [1, -1]), "negative"),
        (lambda: ClassRatios(pixels, -pixels, pixels[0], zeros(2), "shown"), "finite"),
    ]:
        with pytest.raises(ValueError, match=word):
            action()


def paired(images, totals, counts=None):
    """Pairs of images [pairs 2], with the totals of two scores [pairs 2]."""
    images, totals = np.asarray(images), np.asarray(totals, float)
    counts = np.ones(len(totals)) if counts is None else np.asarray(counts, float)
    return Ratios(totals, counts, zeros(len(totals)), zeros(len(totals)), images=images)


def test_pairs_that_share_images_vary_together():
    """The variance of Aronow et al., and the own variance of pairs of two images in several pairs again."""
    g = np.random.default_rng(0)
    images = np.array([pair for pair in itertools.permutations(range(6), 2) if pair != (4, 5)])
    measured = paired(images, g.random((len(images), 2)), g.integers(1, 4, len(images)))
    slopes = measured.slopes()
    expected = np.zeros((2, 2))
    for one, two in itertools.product(range(len(images)), repeat=2):
        times = len(set(images[one].tolist()) & set(images[two].tolist()))
        expected += times * np.outer(slopes[one], slopes[two])
    uncertainty = Uncertainty.of(measured)
    np.testing.assert_allclose(uncertainty.covariance, expected * 6 / 5, rtol=1e-9)
    aronow = expected - sum(
        np.outer(slopes[one], slopes[two])
        for one, two in itertools.product(range(len(images)), repeat=2)
        if set(images[one].tolist()) == set(images[two].tolist())
    )
    assert (np.diag(uncertainty.covariance) > np.diag(aronow)).all()
    counts = np.bincount(images.ravel(), np.repeat(measured.counts, 2))
    assert uncertainty.errors()[1] == pytest.approx(counts.sum() ** 2 / (counts**2).sum() - 2)


def test_images_of_one_pair_are_no_units_of_their_own():
    """Pairs that share no image, also those in both orders, and a pair with each image of a series."""
    g = np.random.default_rng(1)
    alone = paired(np.arange(40).reshape(20, 2), g.random((20, 2)))
    plain = replace(alone, images=None)
    for found, expected in zip(intervals(alone), intervals(plain), strict=True):
        np.testing.assert_allclose(found, expected)
    both = paired([(0, 1), (1, 0), (2, 3), (3, 2), (4, 5)], g.random((5, 2)))
    together = both.sampling.toarray().tolist()
    assert sorted(together) == [[0, 0, 0, 0, 1], [0, 0, 1, 1, 0], [1, 1, 0, 0, 0]]
    star = paired([(0, 1), (0, 2), (3, 0), (4, 5), (6, 6)], g.random((5, 2)), [1, 1, 1, 1, 0])
    assert sorted(star.sampling.toarray().tolist()) == [[0, 0, 0, 1, 0], [1, 1, 1, 0, 0]]


def test_values_between_miss_and_hit_have_the_interval_of_a_share():
    g = np.random.default_rng(2)
    values = 100 * g.beta(2, 0.4, (6, 3))
    measured = ratios(values)
    many = replace(measured, trials=Trials(np.full((6, 3), 1e6), np.full(3, 100.0)))
    (low, high), (_, most) = intervals(many), intervals(measured)
    assert ((low >= 0) & (high <= 100)).all()
    assert (most > 100).any()
    assert (low < values.mean(axis=0)).all()
    assert (high > values.mean(axis=0)).all()
    # with many units it is Student's
    often = ratios(np.tile(values, (200, 1)))
    share = replace(often, trials=Trials(np.full((1200, 3), 1e6), np.full(3, 100.0)))
    np.testing.assert_allclose(intervals(share), intervals(often), atol=0.1)
    # draws of training images are part of the variance
    drawn = replace(share, draws=values.mean(axis=0) + np.array([[-8.0], [1.0], [7.0]]))
    (narrow, _), (wide, _) = intervals(share), intervals(drawn)
    assert (wide < narrow - 5).all()


def test_indices_of_partitions_share_their_tables():
    together = replace(partitions(), indices=("purity", "NMI", "ARI"))
    alone = [replace(together, indices=(index,)) for index in together.indices]
    assert together.scores == 9
    for score in (lambda one: one.evaluate(), lambda one: one.slopes()):
        np.testing.assert_array_equal(score(together), np.concatenate([score(one) for one in alone], axis=1))


def every(n):
    """All numbers of hits of n independent trials, a score each."""
    return hits(np.arange(n)[:, None] < np.arange(n + 1))


@pytest.mark.parametrize("n", [5, 20, 50])
def test_independent_hits_have_the_exact_interval(n):
    low, high = share_intervals(every(n))
    for count in range(n + 1):
        expected = stats.binomtest(count, n).proportion_ci(0.95, "exact")
        assert (low[count], high[count]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_of_clusters_that_are_all_right_only_the_clusters_count():
    low, _ = share_intervals(hits(np.full(40, 5), np.full(40, 5)))
    assert low[0] < 1 - 0.9 * (1 - share_intervals(hits(np.ones(40)))[0][0])
    assert low[0] == pytest.approx(share_intervals(hits(np.ones(40)))[0][0], abs=0.01)


def test_items_that_are_alike_within_clusters_are_worth_one():
    one = hits(np.arange(80) % 4 > 0)
    many = replace(
        one, totals=6 * one.totals, counts=6 * one.counts, trials=Trials(np.full(80, 6.0), np.ones(1))
    )
    np.testing.assert_allclose(share_intervals(many), share_intervals(one), atol=0.004)


def test_items_that_are_independent_within_clusters_count_nearly_each():
    g = np.random.default_rng(0)
    right = g.binomial(4, 0.7, (300, 1))
    low, high = share_intervals(hits(right, np.full(300, 4)))
    expected = stats.binomtest(int(right.sum()), 1200).proportion_ci(0.95, "exact")
    assert (high - low)[0] == pytest.approx(expected.high - expected.low, rel=0.12)


@pytest.mark.parametrize("share", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("weights", ["items", "clusters", "strata"])
def test_clustered_hits_are_covered(share, weights):
    """Of 40 clusters of 1 to 7 items that are alike by 0.4, in means of items, clusters or strata."""
    covered = 0
    for seed in range(200):
        g = np.random.default_rng(seed)
        held = g.integers(1, 8, 40)
        right = g.binomial(held, g.beta(1.5 * share, 1.5 * (1 - share), 40)).astype(float)[:, None]
        groups = np.arange(40) % 4 if weights == "strata" else zeros(40)
        count = held.astype(float)
        trials = Trials(count, np.ones(1))
        if weights == "clusters":
            right, count = right / held[:, None], np.ones(40)
        low, high = share_intervals(Ratios(right, count, groups, groups, trials))
        covered += low[0] <= share <= high[0]
    assert covered / 200 >= 0.93


def test_other_scores_beside_hits_keep_their_bootstrap():
    g = np.random.default_rng(0)
    values = np.stack([g.random(60) < 0.9, g.random(60)], axis=1).astype(float)
    mixed = Ratios(values, np.ones(60), zeros(60), zeros(60), Trials(np.ones(60), np.array([1.0, np.nan])))
    ends = np.stack(intervals(mixed))
    assert ends[:, 1] == pytest.approx(np.stack(intervals(replace(mixed, trials=None)))[:, 1])
    assert ends[:, 0].tolist() == [float(end[0]) for end in share_intervals(hits(values[:, 0]))]


def test_hits_are_checked():
    measured = hits(np.ones(5))
    with pytest.raises(ValueError, match="hits or shares"):
        share_intervals(replace(measured, trials=None))


def test_a_variance_near_the_least_number_leaves_the_degrees_of_freedom() -> None:
    """As of neighbours whose votes hardly count: its square is 0."""
    rows = np.zeros((12, 2))
    rows[:, 1] = 1e-90 * np.arange(12)
    error, freedom = Uncertainty([(rows, 11.0)]).errors()
    assert error[1] > 0
    assert freedom.tolist() == pytest.approx([11, 11])
