"""Intervals, comparisons and choices from the items of tasks, by loops over clusters and their items."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from layerboard.tasks.framework.assess import (
    below_best,
    choices_on_halves,
    group_difference,
    held_out_gain,
    intervals_of,
    measure,
    paired_differences,
    standing_of,
)
from layerboard.tasks.framework.base import PAIRED, Items, Statistic
from layerboard.tasks.statistics.mcb import compare_groups, compare_with_best
from layerboard.tasks.statistics.uncertainty import choose_on_halves, differences, intervals
from layerboard.tasks.statistics.weighted import Ratios, halves
from tests.tasks.clustering.test_task import counted_purity

INDICES: Mapping[str, Callable[..., float]] = {
    "purity": counted_purity,
    "NMI": normalized_mutual_info_score,
    "ARI": adjusted_rand_score,
}
STATISTICS = {
    "all": Statistic("value"),
    "all others": Statistic("other"),
    "per cluster": Statistic("value", "clusters"),
    "per stratum": Statistic("value", "strata"),
    "few": Statistic("gaps"),
    "few per cluster": Statistic("gaps", "clusters"),
    "few per stratum": Statistic("gaps", "strata"),
    **{name: Statistic(name, "partition") for name in INDICES},
}


def make(seed: int, quality: float = 0.5, count: int = 40) -> Items:
    """Items of 15 clusters in 3 strata, in no order; one cluster and many an item have no ``gaps``."""
    shared, own = np.random.default_rng(7), np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(15), shared.integers(15, size=count - 15)])
    cluster = cluster[shared.permutation(count)]
    absent = (shared.random(count) < 0.3) | (cluster == 4)
    value = 100.0 * (own.random(count) < quality)
    label = shared.integers(4, size=count)
    starts = {
        f"start {n}": np.where(own.random(count) < quality, label, own.integers(5, size=count))
        for n in (1, 2, 3)
    }
    return Items(
        unit="things",
        keys=tuple(f"item {number:03d}" for number in range(count)),
        clusters=tuple(f"c{number}" for number in cluster),
        strata=tuple("xyz"[number % 3] for number in cluster),
        values={
            "value": value,
            "other": value / 100 + own.random(count),
            "gaps": np.where(absent, np.nan, value + own.random(count)),
            "label": label.astype(np.float64),
            **{name: found.astype(np.float64) for name, found in starts.items()},
        },
        statistics=STATISTICS,
    )


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def obvious(items: Items, metric: str, weight: Mapping[str, int] | None = None) -> float:
    """A score in percent where each cluster's items come as often as its weight."""
    weight = weight or dict.fromkeys(items.clusters, 1)
    statistic = items.statistics[metric]
    if statistic.over == "partition":
        rows = [row for row, name in enumerate(items.clusters) for _ in range(weight[name])]
        label, start = (items.values[name][rows].astype(np.int64) for name in ("label", "start 1"))
        return 100 * float(INDICES[statistic.column](label, start))
    column = items.values[statistic.column]
    of: dict[str, list[float]] = {name: [] for name in sorted(set(items.clusters))}
    for name, value in zip(items.clusters, column, strict=True):
        if not np.isnan(value):
            of[name].append(float(value))
    if statistic.over == "clusters":
        return mean([mean(values) for name, values in of.items() if values for _ in range(weight[name])])
    if statistic.over == "items":
        return mean([value for name, values in of.items() for value in values * weight[name]])
    stratum = dict(zip(items.clusters, items.strata, strict=True))
    parts: dict[str, list[float]] = {}
    for name, values in of.items():
        parts.setdefault(stratum[name], []).extend(values * weight[name])
    return mean([mean(part) for part in parts.values() if part])


def scale(metric: str) -> float:
    return 100.0 if metric in INDICES else 1.0


@pytest.mark.parametrize("metric", STATISTICS)
def test_scores_of_weighted_units_equal_loops(metric: str) -> None:
    layers = [make(seed) for seed in (1, 2)]
    names = sorted(set(layers[0].clusters))
    weights = np.random.default_rng(3).integers(0, 4, (12, len(names)))
    weights[0] = np.array([name == "c3" for name in names])
    found = measure(layers, metric).evaluate(weights.astype(np.float64))
    for row, scores in zip(weights, found, strict=True):
        weight = dict(zip(names, row.tolist(), strict=True))
        expected = [obvious(one, metric, weight) for one in layers]
        np.testing.assert_allclose(scale(metric) * scores, expected, rtol=1e-9, atol=1e-9)


def test_layers_of_other_items_or_gaps_are_not_measured_together() -> None:
    first, second = make(1), make(2)
    renamed = replace(second, keys=(*second.keys[:-1], "other"))
    with pytest.raises(ValueError, match="the same items for all layers of all"):
        measure([first, renamed], "all")
    gaps = second.values["gaps"].copy()
    gaps[np.flatnonzero(~np.isnan(gaps))[0]] = np.nan
    with pytest.raises(ValueError, match="values of the same items"):
        measure([first, replace(second, values={**second.values, "gaps": gaps})], "few")


def test_layers_and_metrics_together_have_the_intervals_of_each_alone() -> None:
    layers = [make(seed) for seed in (1, 2, 3)]
    together = intervals_of(layers)
    assert list(together) == list(STATISTICS)
    for metric, ends in together.items():
        for one, found in zip(layers, ends, strict=True):
            expected = scale(metric) * np.stack(intervals(measure([one], metric)))[:, 0]
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            assert found[0] < obvious(one, metric) < found[1]


def test_layers_have_intervals_of_their_own_whatever_stands_beside_them() -> None:
    """Such as layers of other items, without some values or any of a metric, or without a metric."""
    whole, other, nothing = make(1), make(2), {"none": np.full(40, np.nan)}
    holes = {"other": np.where(np.arange(40) < 3, np.nan, other.values["other"])}
    layers = [
        replace(whole, values=whole.values | nothing, statistics={"none": Statistic("none"), **STATISTICS}),
        without(other, [3, 8]),
        make(3),
        replace(other, values=other.values | holes),
        replace(other, statistics={"all": STATISTICS["all"]}),
    ]
    together = intervals_of(layers)
    for place, one in enumerate(layers):
        alone = intervals_of([one])
        for metric, ends in together.items():
            (expected,) = alone.get(metric, [(np.nan, np.nan)])
            np.testing.assert_allclose(ends[place], expected, rtol=1e-9)
    assert np.isnan(together["none"][0]).all()


def without(items: Items, rows: Sequence[int]) -> Items:
    """The items but some of them."""
    return taken(items, [row for row in range(len(items.keys)) if row not in rows])


def taken(items: Items, rows: Sequence[int]) -> Items:
    keys, names, strata = (
        tuple(column[row] for row in rows) for column in (items.keys, items.clusters, items.strata)
    )
    values = {name: column[list(rows)] for name, column in items.values.items()}
    return replace(items, keys=keys, clusters=names, strata=strata, values=values)


def test_intervals_of_means_are_those_of_the_units() -> None:
    """Of equally large clusters, of which 8 lie in each of 5 strata: Student's interval of their means."""
    rng = np.random.default_rng(0)
    centre = rng.normal(50, 12, (40, 1)) + 30 * (np.arange(40)[:, None] // 8)
    values = (centre + rng.normal(0, 3, (40, 6))).ravel()
    names = tuple(f"c{row:02d}" for row in range(40) for _ in range(6))
    strata = tuple(f"s{row // 8}" for row in range(40) for _ in range(6))
    keys = tuple(str(number) for number in range(240))
    metrics = {over: Statistic("v", over) for over in ("items", "clusters", "strata")}  # type: ignore[arg-type]
    means = values.reshape(5, 8, 6).mean(axis=2)
    cases = {
        # sampled alone, within nothing; in clusters, within nothing; in clusters, within strata
        "alone": (keys, ("",) * 240, t.ppf(0.975, 239) * values.std(ddof=1) / np.sqrt(240)),
        "clusters": (names, ("",) * 240, t.ppf(0.975, 39) * means.ravel().std(ddof=1) / np.sqrt(40)),
        "strata": (names, strata, t.ppf(0.975, 35) * np.sqrt(means.var(axis=1, ddof=1).mean() / 40)),
    }
    for units, within, half in cases.values():
        found = intervals_of([Items("things", keys, units, within, {"v": values}, metrics)])
        for metric in metrics:  # clusters and strata are equally large: one mean
            low, high = found[metric][0]
            assert low == pytest.approx(values.mean() - half, abs=0.06 * half)
            assert high == pytest.approx(values.mean() + half, abs=0.06 * half)


@pytest.mark.parametrize("metric", STATISTICS)
def test_choices_are_those_on_halves_in_percent(metric: str) -> None:
    layers = [make(seed, 0.6) for seed in (1, 2, 3)]
    chosen, held_out = choose_on_halves(measure(layers, metric), splits=100, seed=0)
    found = choices_on_halves(layers, metric)
    assert [one.chosen for one in found] == chosen.tolist()
    np.testing.assert_allclose([one.held_out for one in found], scale(metric) * held_out)


@pytest.mark.parametrize("metric", STATISTICS)
def test_losses_are_those_of_the_comparison_with_the_best_in_percent(metric: str) -> None:
    best = make(1, 0.97)
    layers = [best, make(2, 0.02), best, make(3, 0.7)]
    compared = compare_with_best(measure(layers, metric))
    assert compared is not None
    found = [one for one in below_best(layers, metric) if one is not None]
    assert [one.maybe for one in found] == compared.maybe.tolist()
    np.testing.assert_allclose([one.loss for one in found], scale(metric) * compared.loss)
    assert [one.maybe for one in found[:3]] == [True, False, True]
    scores = [obvious(one, metric) for one in layers]
    assert found[0].loss == pytest.approx(found[2].loss, rel=0.1)  # equal layers, but for the draws
    assert all(one.loss > scores[0] - score for one, score in zip(found[1::2], scores[1::2], strict=True))


def test_layers_are_chosen_among_on_the_items_that_all_have() -> None:
    layers = [make(1), without(make(2), [0, 9]), without(make(3), [30])]
    common = [without(make(seed), [0, 9, 30]) for seed in (1, 2, 3)]
    for metric in STATISTICS:
        found, expected = (np.array(choices_on_halves(each, metric)) for each in (layers, common))
        assert np.array_equal(found, expected, equal_nan=True)


def test_nothing_is_chosen_where_nothing_is_shared() -> None:
    one, two = make(1), replace(make(2), keys=tuple(f"other {number}" for number in range(40)))
    for found in choices_on_halves([one, two], "all"):
        assert np.isnan([found.chosen, found.held_out]).all()
    assert below_best([one, two], "all")[1] is None
    assert group_difference([one], [two], "all") is None


def test_candidates_of_other_items_or_kinds_are_left_out() -> None:
    first, second, third = (make(seed, 0.5, 100) for seed in (1, 2, 3))
    few = [without(second, range(5)), without(second, range(6))]
    other = replace(second, statistics={**STATISTICS, "all": Statistic("value", "clusters")})
    lacking = replace(second, statistics={"few": STATISTICS["few"]})
    for candidate in (few[1], other, lacking):
        found = below_best([first, candidate, third], "all")
        assert found[1] is None
        assert [found[0], found[2]] == below_best([first, third], "all")
        assert below_best([first, candidate], "all") == [*below_best([first], "all"), None]
    assert below_best([lacking, first], "all") == [None, None]  # the first one has the highest score
    assert below_best([], "all") == []
    shared = [without(one, range(5)) for one in (first, second, third)]
    assert below_best([first, few[0], third], "all") == below_best(shared, "all")
    # what all share counts: five items each are missing, and ten of both
    found = below_best([first, few[0], without(third, range(5, 10))], "all")
    assert [one is None for one in found] == [False, False, True]
    # neither does one that has more: 95 of 101 items
    assert below_best([few[0], make(4, 0.5, 101)], "all")[1] is None


@pytest.mark.parametrize("count", [199, 200])
def test_mean_errors_of_few_units_have_no_interval(count: int) -> None:
    """Units count, not the items of which they may have several; the ends lie above 0."""
    keys = tuple(str(number) for number in range(2 * count))
    errors = np.random.default_rng(5).lognormal(size=2 * count)
    clusters = tuple(str(number // 2) for number in range(2 * count))
    items = Items("images", keys, clusters, ("",) * 2 * count, {"v": errors}, {"v": Statistic("v", "errors")})
    ((low, high),) = intervals_of([items])["v"]
    if count < 200:
        assert np.isnan([low, high]).all()
    else:
        assert 0 < low < errors.mean() < high


def test_too_few_units_say_nothing_of_the_best() -> None:
    alone = [taken(make(seed), [0]) for seed in (1, 2)]
    assert below_best(alone, "all") == [None, None]
    found = group_difference(alone[:1], alone[1:], "all")
    assert found is not None
    assert found.value == obvious(alone[0], "all") - obvious(alone[1], "all")
    assert np.isnan([found.low, found.high, found.p]).all()


@pytest.mark.parametrize("metric", STATISTICS)
def test_groups_are_compared_by_the_best_of_all_their_layers(metric: str) -> None:
    first, second = [make(1, 0.9), make(2, 0.6)], [make(3, 0.01), make(4, 0.3), make(5, 0.1)]
    found, turned = group_difference(first, second, metric), group_difference(second, first, metric)
    assert found is not None
    assert turned is not None
    fractions = compare_groups(measure([*first, *second], metric), np.arange(5) < 2)
    assert fractions is not None
    best = [max(obvious(one, metric) for one in layers) for layers in (first, second)]
    assert found.value == pytest.approx(best[0] - best[1])
    np.testing.assert_allclose(found[:3], scale(metric) * np.array(fractions[:3]))
    assert found.p == fractions.p
    assert found.low < found.value < found.high
    assert turned.value == -found.value
    assert turned.p == pytest.approx(found.p, rel=0.3, abs=0.002)  # but for the draws
    np.testing.assert_allclose([turned.low, turned.high], [-found.high, -found.low], rtol=0.1, atol=1)


@pytest.mark.parametrize("metric", STATISTICS)
@pytest.mark.parametrize("reference", [0, 2])
def test_differences_of_scores_equal_loops(metric: str, reference: int) -> None:
    layers = [make(seed, 0.3 * seed) for seed in (1, 2, 3)]
    found = paired_differences(layers, metric, reference)
    assert found is not None
    scores = np.array([obvious(one, metric) for one in layers])
    np.testing.assert_allclose(found.value, scores - scores[reference], atol=1e-9)
    fractions = differences(measure(layers, metric), reference)
    np.testing.assert_allclose(found.low, scale(metric) * fractions.low)
    np.testing.assert_allclose(found.high, scale(metric) * fractions.high)
    np.testing.assert_array_equal(found.p, fractions.p)


@pytest.mark.parametrize(("absent", "compared"), [(1, True), (5, True), (6, False), (100, False)])
def test_scores_are_compared_on_the_items_that_all_share(absent: int, compared: bool) -> None:
    every = [make(1, 0.8, 100), make(2, 0.4, 100)]
    shared = [without(one, range(100 - absent, 100)) for one in every]
    value = obvious(shared[1], "all") - obvious(shared[0], "all")
    for turned, pair in ((1, [every[0], shared[1]]), (-1, [shared[1], every[0]])):
        paired, groups = paired_differences(pair, "all", 0), group_difference(pair[:1], pair[1:], "all")
        assert [paired is not None, groups is not None] == [compared] * 2
        if paired is not None and groups is not None:
            assert paired.value.tolist() == pytest.approx([0, turned * value])
            same = shared[::turned]
            assert groups == pytest.approx(group_difference(same[:1], same[1:], "all"))


def test_scores_of_other_kinds_are_not_compared() -> None:
    one, third = make(1), make(3)
    other = replace(make(2), statistics={**STATISTICS, "all": Statistic("value", "clusters")})
    fewer = replace(make(2), statistics={"few": STATISTICS["few"]})
    for rival in (other, fewer):
        assert paired_differences([one, rival], "all") is None
        assert group_difference([one], [rival], "all") is None
        assert group_difference([rival, one], [one], "all") is None
        assert group_difference([one, rival], [third], "all") == group_difference([one], [third], "all")
    assert paired_differences([one, other], "per stratum") is not None
    assert group_difference([one], [other], "per stratum") is not None


@pytest.mark.parametrize("metric", STATISTICS)
def test_the_order_of_items_does_not_matter(metric: str) -> None:
    only = {metric: STATISTICS[metric]}
    layers = [replace(make(seed, 0.3 * seed), statistics=only) for seed in (1, 2, 3)]
    order = np.random.default_rng(0).permutation(40).tolist()
    for mixed in ([taken(one, order) for one in layers], [layers[0], taken(layers[1], order), layers[2]]):
        for one, two in zip(choices_on_halves(layers, metric), choices_on_halves(mixed, metric), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9)
        for below, same in zip(below_best(layers, metric), below_best(mixed, metric), strict=True):
            assert below is not None
            assert below == pytest.approx(same)
        assert group_difference(layers[:1], layers[1:], metric) == pytest.approx(
            group_difference(mixed[:1], mixed[1:], metric)
        )
        for ends, others in zip(intervals_of(layers)[metric], intervals_of(mixed)[metric], strict=True):
            np.testing.assert_allclose(ends, others, rtol=1e-9)
        first, second = paired_differences(layers, metric, 1), paired_differences(mixed, metric, 1)
        assert first is not None
        assert second is not None
        np.testing.assert_allclose([first.low, first.high], [second.low, second.high], atol=1e-9)


PAIRS = ("000001-2008_01-2008_02:cat", "000002-2008_02-2008_03:cat", "000003-2008_05-2008_06:cat")


def test_keypoints_of_pairs_that_share_images_count_by_images() -> None:
    """Also stored ones without columns of the images, whose names the keys of SPair's pairs have."""
    clusters = tuple(name for name in PAIRS for _ in range(4))
    keys = tuple(f"{name}#{row}" for row, name in enumerate(clusters))
    values = {"v": 100.0 * (np.random.default_rng(0).random(12) < 0.5)}
    sides = [np.repeat(side, 4).astype(float) for side in ((7, 2, 5), (2, 3, 6))]
    stored = Items("keypoints", keys, clusters, ("cat",) * 12, values, {"v": Statistic("v", "strata")})
    named = replace(stored, clusters=tuple(name.split("-")[0] for name in clusters))
    named = replace(named, values=values | dict(zip(PAIRED, sides, strict=True)))
    for items in (stored, named):
        measured = measure([items], "v")
        assert isinstance(measured, Ratios)
        assert measured.sampling is not None
        assert measured.sampling.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert intervals_of([stored]) == intervals_of([named])
    of_images = replace(stored, unit="images")
    plain = measure([of_images], "v")
    assert isinstance(plain, Ratios)
    assert plain.images is None


def test_percentages_of_queries_and_objects_have_intervals_within_their_range() -> None:
    names = tuple("abcd")
    for unit in ("queries", "objects", "images"):
        values = {"v": np.array([99.0, 80, 100, 97]), "hit": np.array([100.0, 0, 100, 100])}
        items = Items(unit, names, names, ("",) * 4, values, {name: Statistic(name) for name in values})
        found = intervals_of([items])
        assert (found["v"][0][1] <= 100) == (unit != "images")
        low, high = binomtest(3, 4).proportion_ci(0.95, "exact")
        assert found["hit"][0] == pytest.approx((100 * low, 100 * high))


def test_rivals_without_the_metric_or_with_other_items_have_no_standing() -> None:
    first, second = make(1), make(2)
    standing = standing_of([[first], [second]], "all")
    assert standing is not None
    assert standing.smallest > 0
    assert standing_of([[first], [second]], "of no task") is None
    keys = tuple(f"other {key}" for key in second.keys)
    assert standing_of([[first, replace(second, keys=keys)], [first]], "all") is None


def hits(random: np.random.Generator, chances: Sequence[float], images: int = 60) -> list[Items]:
    """Hits of several candidates on the same images, some of which are easy for all."""
    easy = random.normal(size=(images, 1))
    height = np.sqrt(0.8) * easy + np.sqrt(0.2) * random.normal(size=(images, len(chances)))
    keys = tuple(f"{number:03d}" for number in range(images))
    columns = 100.0 * (height < norm.ppf(chances))
    statistics = {"top-1": Statistic("value")}
    return [
        Items("images", keys, keys, ("",) * images, {"value": column}, statistics) for column in columns.T
    ]


def test_a_held_out_gain_is_that_of_loops_over_halves() -> None:
    candidates = hits(np.random.default_rng(5), [0.5, 0.6, 0.7, 0.4, 0.55])
    values = np.stack([each.values["value"] for each in candidates], axis=1)
    gains, errors = [], []
    for half in halves(np.zeros(60, np.int64), 100, 0):
        apart = np.zeros(60)
        for chosen_on, scored_on in ((half, ~half), (~half, half)):
            first, second = (
                np.argmax(values[chosen_on][:, part].mean(axis=0)) for part in (slice(3), slice(3, 5))
            )
            apart[scored_on] = values[scored_on, first] - values[scored_on, 3 + second]
        gains.append(apart.mean())
        errors.append(apart.std(ddof=1) / 60**0.5)
    found = held_out_gain(candidates[:3], candidates[3:], "top-1")
    assert found is not None
    assert found.value == pytest.approx(np.mean(gains))
    assert found.high - found.value == pytest.approx(t.ppf(0.975, 59) * np.sqrt(np.mean(np.square(errors))))
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_a_choice_among_many_equal_candidates_gains_nothing() -> None:
    """The gain of the best of 20 over the best of 4 is positive on the same items, and 0 held out."""
    random, same, fair, covers = np.random.default_rng(0), [], [], []
    for _ in range(40):
        candidates = hits(random, [0.6] * 24)
        scores = [each.values["value"].mean() for each in candidates]
        same.append(max(scores[:20]) - max(scores[20:]))
        gain = held_out_gain(candidates[:20], candidates[20:], "top-1")
        assert gain is not None
        fair.append(gain.value)
        covers.append(gain.low <= 0 <= gain.high)
    assert np.mean(same) > 3
    assert abs(np.mean(fair)) < 2
    assert np.mean(covers) >= 0.93


def test_a_choice_can_have_a_rule_and_other_kinds_of_scores() -> None:
    good, bad = make(1, 0.9), make(2, 0.3)
    assert held_out_gain([good, bad], [bad], "all", lambda _: 1) == pytest.approx((0, 0, 0))
    for metric in ("per cluster", "per stratum", "few"):
        gain = held_out_gain([good, bad], [bad], metric)
        difference = paired_differences([good, bad], metric, 1)
        assert gain is not None
        assert difference is not None
        assert gain == pytest.approx((difference.value[0], difference.low[0], difference.high[0]))
    clusters = held_out_gain([good], [bad], "purity")
    assert clusters is not None
    assert clusters.value > 10
    assert np.isnan(clusters.low)
    assert held_out_gain([good], [bad.only(range(30))], "all") is None
