"""Uncertainty of a task's scores: its per-item values as units for intervals, tests and splits."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.framework.base import AVERAGED, NEIGHBOUR, OF_PIXELS, PAIRED, Items, Over, Statistic
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.mcb import Groups, compare_groups, compare_with_best
from layerboard.tasks.statistics.rank_correlation import Correlation, true_rank_correlation
from layerboard.tasks.statistics.ranks import rank_ranges
from layerboard.tasks.statistics.resolution import smallest_difference
from layerboard.tasks.statistics.uncertainty import (
    Differences,
    Uncertainty,
    WeightedScores,
    choose_on_halves,
    differences,
    intervals,
    paired_halves,
    without_last_digits,
)
from layerboard.tasks.statistics.weighted import MANY, ClassRatios, Index, Partitions, Ratios, Trials, halves

HIT = 100.0  # value of a hit in the columns of items; a miss is 0
# means of strata in percent, with arbitrary item values
RANKED: tuple[Over, ...] = ("ranks", "curves", "shares", "correlations")
# below as many units of a stratum no interval holds in simulations: a few large errors decide a mean, and a
# few defects what is ranked first
LEAST: Mapping[Over, int] = {"errors": 200, "curves": 10}
# below as many units of a stratum equal layers would be told apart in more than 6 %; by simulation
LEAST_COMPARED: Mapping[Over, int] = {"ranks": 8}
BOUNDS: Mapping[Over, float] = {"explained": 100.0, "errors": 0.0}  # of scores that have only one
SHARES = ("queries", "objects")  # units whose values are percentages: precision, recall, J and F
SPAIR = re.compile(r"\d+-([^-]+)-([^-]+):.*")  # name of a pair, with the names of its images
CROSSED, AT_ONCE = 100, 20  # random halves on which choices are made, and those whose items are in memory
SHARED = 0.95  # least share of common items of two scores that are compared


class Chosen(NamedTuple):
    """How often one score is chosen among its competitors on a half of the data, in its unit."""

    chosen: float  # share of 100 random halves of the units on which it scores best; NaN without halves
    held_out: float  # its mean score on the other halves in those splits; NaN if there are none


def choices_on_halves(items: Sequence[Items], metric: str) -> list[Chosen]:
    """Held-out scores for layers that compete in one metric.

    If the items of the layers differ a little, such as regions that vanish in a coarser grid, the common
    items are used.
    """
    chosen, held_out = choose_on_halves(measure(_common(items), metric))
    scale = _scale(items, metric)
    rows = zip(chosen.tolist(), held_out.tolist(), strict=True)
    return [Chosen(share, scale * score) for share, score in rows]


class Below(NamedTuple):
    """How far one of several scores may be below the best of them."""

    loss: float  # the true best is at most so far above its true score, >= 0, in the unit of the scores
    maybe: bool  # whether it may be the best


def below_best(items: Sequence[Items], metric: str) -> list[Below | None]:
    """How far each of several candidates may be below the best in one metric, all at once, with 95 %.

    The first has the highest score. Later ones are compared on the items that they share with all before
    them. The result is None for candidates with fewer than 95 % common items or other statistics, and for all
    if there are too few units, or fewer than `LEAST_COMPARED` of a stratum.
    """
    joined = _joined(items, metric)
    below: list[Below | None] = [None] * len(items)
    layers = [items[index] for index in joined]
    common = _common(layers) if layers else []
    compared = compare_with_best(measure(common, metric)) if _can_compare(common, metric) else None
    if compared is not None:
        losses = (_scale(layers, metric) * compared.loss).tolist()
        for index, loss, maybe in zip(joined, losses, compared.maybe.tolist(), strict=True):
            below[index] = Below(loss, maybe)
    return below


def _joined(items: Sequence[Items], metric: str) -> list[int]:
    """Indices of the first one, and of those with its statistic and most of the items of those before."""
    if not items or metric not in items[0].statistics:
        return []
    joined, keys = list[int](), items[0].keys
    shared, most = set(keys), len(keys)
    for index, layer in enumerate(items):
        if layer.statistics.get(metric) != items[0].statistics[metric]:
            continue
        common = shared if layer.keys == keys else shared.intersection(layer.keys)
        if len(common) >= SHARED * max(most, len(layer.keys)):
            joined.append(index)
            shared, most = common, max(most, len(layer.keys))
    return joined


def group_difference(first: Sequence[Items], second: Sequence[Items], metric: str) -> Groups | None:
    """The best of some candidates minus the best of others in one metric, with its 95 % interval.

    They use the common items; candidates that lack more than 5 % of them take no part, and if none of a side
    is left, the result is None. The highest of either comes first. The interval and p are NaN for too few
    units.
    """
    if not first or not second:
        return None
    every, highest = [*first, *second], {0, len(first)}
    # the highest of each decide which items count
    order = sorted(range(len(every)), key=lambda index: index not in highest)
    joined = sorted(order[index] for index in _joined([every[index] for index in order], metric))
    if not highest <= {*joined}:
        return None
    layers, is_first = [every[index] for index in joined], np.array(joined) < len(first)
    common, scale = _common(layers), _scale(layers, metric)
    measured = measure(common, metric)
    groups = compare_groups(measured, is_first) if _can_compare(common, metric) else None
    if groups is None:
        scores = measured.evaluate()[0]
        return Groups(scale * float(scores[is_first].max() - scores[~is_first].max()), *[math.nan] * 3)
    return Groups(scale * groups.value, scale * groups.low, scale * groups.high, groups.p)


Choose = Callable[[Floats], int]
"""Function that chooses one of several candidates by their scores, and returns its index."""


def pick_highest(scores: Floats) -> int:
    """Index of the highest score, the first of equal ones."""
    return int(np.argmax(scores))


class HeldOutGain(NamedTuple):
    """What one choice gains over another on data that made neither, with its 95 % interval, in its unit."""

    value: float
    low: float
    high: float


def held_out_gain(
    first: Sequence[Items], second: Sequence[Items], metric: str, choose: Choose = pick_highest
) -> HeldOutGain | None:
    """What a choice among some candidates gains over the choice of the highest among others.

    The units are split in two random halves. Both choices are made on each half, and the other half is scored
    by them, so that each item has a paired difference that did not choose; the gain is the mean over
    `CROSSED` splits. It varies less than that of one split, by how much is unknown: its 95 % interval is as
    wide as theirs are on average (root mean square; docs/explanation/simulations.md has its coverage). It is
    the gain of candidates which are chosen on half of the units. For clusters, which have no values of items,
    it is that of the held-out scores, without an interval; nor has it one for fewer than `LEAST_COMPARED`
    units of a stratum. None if the candidates do not share 95 % of their items, or if there are no halves.
    """
    every = [*first, *second]
    if not _comparable(every, metric):
        return None
    if every[0].statistics[metric].over == "partition":
        gain = _held_out_score(first, metric) - _held_out_score(second, metric)
        return HeldOutGain(gain, math.nan, math.nan)
    layers = [_of_metric(each, metric) for each in _common(every)]
    measured = measure(layers, metric)
    mask = halves(measured.stratum, CROSSED, 0)
    scores = [measured.evaluate(half.astype(np.float64)) for half in (mask, ~mask)]
    there = np.isfinite(scores).all(axis=(0, 2))
    if not there.any():
        return None
    unit = np.unique(np.asarray(layers[0].clusters, str), return_inverse=True)[1]
    sides = (slice(len(first)), choose), (slice(len(first), None), pick_highest)

    def crossed(rows: NDArray[np.intp]) -> Iterator[Items]:
        """The items of either side for some splits, each half as the choice on the other scores it."""
        for part, rule in sides:
            chosen_on = (without_last_digits(each[rows, part]) for each in scores)
            for half, *both in zip(mask[rows], *chosen_on, strict=True):
                picks = [layers[part][rule(row)] for row in both]  # on the first half, and on the second
                yield _crossed(picks[1], picks[0], half[unit])

    parts = np.array_split(np.flatnonzero(there), -(-int(there.sum()) // AT_ONCE))
    gains = [np.stack(paired_halves(measure([*crossed(rows)], metric))) for rows in parts]
    value, reach = _scale(layers, metric) * np.concatenate(gains, axis=1)
    mean = float(value.mean())
    half_width = float(np.sqrt((reach**2).mean())) if _can_compare(layers, metric) else math.nan
    return HeldOutGain(mean, mean - half_width, mean + half_width)


def _held_out_score(side: Sequence[Items], metric: str) -> float:
    """The mean held-out score of what is chosen among candidates, over the splits."""
    choices = choices_on_halves(side, metric)
    return math.fsum(each.chosen * each.held_out for each in choices if each.chosen > 0)


def _of_metric(items: Items, metric: str) -> Items:
    """Items without the columns of other metrics, if those of this one begin with one name."""
    statistic = items.statistics[metric]
    if statistic.over in OF_PIXELS:
        return items
    names = [name for name in items.values if name.startswith(statistic.column) or name in PAIRED]
    values = {name: items.values[name] for name in names}
    return replace(items, values=values, statistics={metric: statistic})


def _crossed(first: Items, second: Items, of_first: NDArray[np.bool_]) -> Items:
    """The items of the first where they are meant, else those of the second; both have the same."""
    names = dict.fromkeys((*first.values, *second.values))
    nothing = np.zeros(len(first.keys))  # of a class that one neither has nor predicts
    values = {
        name: np.where(of_first, first.values.get(name, nothing), second.values.get(name, nothing))
        for name in names
    }
    return replace(first, values=values)


def intervals_of(items: Sequence[Items]) -> dict[str, list[tuple[float, float]]]:
    """For every metric the ends of the 95 % confidence interval of each layer; NaN for too few units.

    Layers with the same items, and metrics with the same kind of average, are evaluated together. Also NaN if
    a layer lacks the metric, and for fewer than `LEAST` units of a stratum.
    """
    alike: dict[object, list[int]] = {}
    for number, layer in enumerate(items):
        # an analysis may lack a value for some images in some layers
        gaps = tuple((metric, _gaps(layer, statistic)) for metric, statistic in layer.statistics.items())
        alike.setdefault((_names(layer), gaps), []).append(number)
    ends: dict[str, Floats] = {}
    for places in alike.values():
        layers = [items[number] for number in places]
        for metrics in _together(layers[0]):
            both = np.stack(intervals(measure(layers, *metrics)), axis=1) * _scale(layers, metrics[0])
            if _too_few(layers[0], layers[0].statistics[metrics[0]], LEAST):
                both[:] = np.nan
            for metric, rows in zip(metrics, both.reshape(len(metrics), len(places), 2), strict=True):
                ends.setdefault(metric, np.full((len(items), 2), np.nan))[places] = rows
    return {metric: [(low, high) for low, high in rows.tolist()] for metric, rows in ends.items()}


def _can_compare(items: Sequence[Items], metric: str) -> bool:
    """Whether there are scores, and as many units as their comparison needs."""
    return bool(items) and not _too_few(items[0], items[0].statistics[metric], LEAST_COMPARED)


def _too_few(items: Items, statistic: Statistic, needed: Mapping[Over, int]) -> bool:
    """Whether some stratum has fewer units with a value than are needed for scores of its kind."""
    if (least := needed.get(statistic.over)) is None:
        return False
    there = ~np.isnan(items.values[statistic.column])
    units = {*zip(np.asarray(items.strata)[there], np.asarray(items.clusters)[there], strict=True)}
    return not units or min(Counter(stratum for stratum, _ in units).values()) < least


def score_of(items: Items, metric: str) -> float:
    """Value of a metric, in its unit, computed from the items."""
    return float(measure([items], metric).evaluate()[0, 0]) * _scale([items], metric)


def _gaps(items: Items, statistic: Statistic) -> bytes:
    """Which items lack a value for a statistic; partitions have no such column."""
    return np.isnan(items.values.get(statistic.column, np.zeros(0))).tobytes()


def _together(items: Items) -> list[list[str]]:
    """Groups of metrics that are evaluated together: those with the same kind of average and the same items.

    In retrieval, a query without a positive of one difficulty may count in the metrics of another.
    """
    groups: dict[tuple[Over, bytes], list[str]] = {}
    for metric, statistic in items.statistics.items():
        groups.setdefault((statistic.over, _gaps(items, statistic)), []).append(metric)
    return list(groups.values())


class Standing(NamedTuple):
    """What the items of several rivals tell about their order."""

    # the first and the last rank of each rival that the items allow, 1 for the best; None for too few units,
    # and if some rivals have other items
    ranks: list[tuple[int, int]] | None
    smallest: float  # smallest difference from the best that is shown, in the metric's unit; NaN for none


def standing_of(
    rivals: Sequence[Sequence[Items]], metric: str, best: Sequence[bool] | None = None
) -> Standing | None:
    """The ranks that the items allow for each rival (backbone), and the smallest difference that they show.

    A rival is given by the items of its layers; ``best`` says which may be the best, and so have the first
    rank (`rank_ranges`). The smallest difference is that of the layers which share most of their items with
    the first rival. None if the layers of the first one do not share most of theirs, or have no statistic for
    the metric.
    """
    joined = [row for row, each in enumerate(rivals) if _comparable([*rivals[0], *each], metric)]
    if not joined:
        return None
    layers = _common([layer for row in joined for layer in rivals[row]])
    measured = measure(layers, metric)
    ranges, compares = None, _can_compare(layers, metric)
    if len(joined) == len(rivals) > 1 and compares:
        ranges = rank_ranges(measured, [row for row, each in enumerate(rivals) for _ in each], best)
    return Standing(
        ranks=None if ranges is None else [(int(first), int(last)) for first, last in ranges],
        smallest=smallest_difference(measured) * _scale(layers, metric) if compares else math.nan,
    )


def _comparable(items: Sequence[Items], metric: str) -> bool:
    """Whether all have the same statistic for the metric and share most of their items."""
    first = items[0].statistics.get(metric)
    if first is None or any(layer.statistics.get(metric) != first for layer in items):
        return False
    shared = set(items[0].keys).intersection(*(layer.keys for layer in items[1:]))
    return len(shared) >= SHARED * max(len(layer.keys) for layer in items)


def true_correlation(tasks: Sequence[tuple[Sequence[Items], str]], *, same_data: bool) -> Correlation | None:
    """Rank correlation of the true scores of backbones in two tasks (`true_rank_correlation`).

    A task is given by the items of one layer of each backbone, the same backbones in both, and its metric.
    With the ``same_data``, sampled units of one name are the same in both, and their errors vary together.
    None also if the scores of a task cannot be compared.
    """
    scores, errors, units, noise = list[Floats](), list[Floats](), list[list[str]](), np.zeros((2, 2))
    for number, (items, metric) in enumerate(tasks):
        if not items or not _comparable(items, metric):
            return None
        common = _common(items)
        measured = measure(common, metric)
        if (uncertainty := Uncertainty.of(measured)) is None:
            return None
        sources = np.concatenate([rows for rows, _ in uncertainty.parts])
        errors.append((sources - sources.mean(axis=1, keepdims=True)) / math.sqrt(max(1, len(items) - 1)))
        noise[number, number] = (errors[-1] ** 2).sum()
        scores.append(measured.evaluate()[0])
        named = np.unique(np.asarray(common[0].clusters, str))[measured.counts > 0]
        units.append([*named] if len(named) == len(uncertainty.parts[0][0]) else [])
    if same_data:
        _, rows, others = np.intersect1d(units[0], units[1], return_indices=True)
        noise[0, 1] = noise[1, 0] = (errors[0][rows] * errors[1][others]).sum()
    return true_rank_correlation(scores[0], scores[1], noise)


def paired_differences(items: Sequence[Items], metric: str, reference: int = 0) -> Differences | None:
    """Paired differences of several scores from one of them, in their unit.

    They use the common items; None if these are fewer than 95 % of the items of any score. Intervals and p
    are NaN for too few units, or fewer than `LEAST_COMPARED` of a stratum.
    """
    if not _comparable(items, metric):
        return None
    scale, common = _scale(items, metric), _common(items)
    paired = differences(measure(common, metric), reference)
    value, low, high, p = scale * paired.value, scale * paired.low, scale * paired.high, paired.p
    ends = (low, high, p) if _can_compare(common, metric) else (np.full_like(low, np.nan),) * 3
    return Differences(value, *ends)


def measure(items: Sequence[Items], *metrics: str) -> WeightedScores:
    """Scores as functions of weighted units: the first metric for every layer, then the next metric.

    The metrics must have the same kind of average. Scores of partitions are fractions. Raises ValueError if
    the layers do not have the same items.
    """
    first = items[0]
    if any(_names(layer) != _names(first) for layer in items):
        raise ValueError(f"expected the same items for all layers of {metrics[0]}")
    statistics = [first.statistics[metric] for metric in metrics]
    names, rows, unit = np.unique(np.asarray(first.clusters, str), return_index=True, return_inverse=True)
    stratum = np.zeros(len(names), np.int64)
    stratum[unit] = np.unique(np.asarray(first.strata, str), return_inverse=True)[1]
    (over,) = {statistic.over for statistic in statistics}
    if over in OF_PIXELS:
        return _classes(items, statistics, unit, stratum)
    if over == "partition":
        return _partitions(items, [statistic.column for statistic in statistics], unit, stratum)
    columns = [(layer, statistic.column) for statistic in statistics for layer in items]
    measured = _ratios([layer.values[name] for layer, name in columns], over, unit, stratum, first.unit)
    if (images := images_of_pairs(first, rows)) is not None:
        numbers = np.unique(images, return_inverse=True)[1].reshape(images.shape)
        measured = replace(measured, images=numbers)
    if any(f"{name}{NEIGHBOUR}" in layer.values for layer, name in columns):
        nothing, moved = np.zeros(len(first.keys)), np.zeros((len(names), len(columns)))
        added = [layer.values.get(f"{name}{NEIGHBOUR}", nothing) for layer, name in columns]
        np.add.at(moved, unit, np.stack(added, axis=1))
        measured = replace(measured, moved=moved)
    drawn = [name for name in first.values if name.startswith(f"{statistics[0].column} draw ")]
    if over != "draws" or len(drawn) < 2:
        return measured
    rows_of = range(1, len(drawn) + 1)
    draws = [[layer.values[f"{name} draw {row}"] for layer, name in columns] for row in rows_of]
    return replace(measured, draws=np.mean(draws, axis=2))


def images_of_pairs(items: Items, rows: Integers) -> NDArray[np.str_] | None:
    """Names of the two images of the pairs of some items, [rows 2]; None if items are of no such pairs.

    Items that were stored without images have them in the names of SPair's pairs.
    """
    if all(name in items.values for name in PAIRED):
        return np.stack([items.values[name][rows] for name in PAIRED], axis=1).astype(np.int64).astype(str)
    if items.unit != "keypoints":
        return None
    pairs = [SPAIR.fullmatch(items.clusters[row]) for row in rows]
    return np.array([each.groups() for each in pairs if each], str) if pairs and all(pairs) else None


def _ratios(columns: Sequence[Floats], over: Over, unit: Integers, stratum: Integers, what: str) -> Ratios:
    values = np.stack(columns, axis=1).astype(np.float64)
    there = ~np.isnan(values)
    if (there != there[:, :1]).any():
        raise ValueError("expected values of the same items in all layers")
    totals = np.zeros((len(stratum), values.shape[1]))
    np.add.at(totals, unit, np.where(there, values, 0.0))
    counts: Floats = np.bincount(unit, there[:, 0], len(stratum)).astype(np.float64)
    hits = ((values == 0) | (values == HIT) | ~there).all(axis=0) & (over not in BOUNDS)
    # other percentages have the interval of a hit rate with the same variance
    shares = hits | (over in (*RANKED, "draws")) | (what in SHARES and over not in BOUNDS)
    many = np.where(hits | (over in ("ranks", "curves")), 1.0, MANY)
    miss = -HIT if over == "correlations" else 0.0
    trials = Trials(counts[:, None] * many, np.where(shares, HIT, np.nan), miss)
    if over == "clusters":
        totals /= np.maximum(counts, 1)[:, None]
        counts = (counts > 0).astype(np.float64)
    group = stratum if over in ("strata", *RANKED) else np.zeros_like(stratum)
    return Ratios(totals, counts, group, stratum, trials, bound=BOUNDS.get(over))


def _partitions(
    items: Sequence[Items], wanted: Sequence[str], unit: Integers, stratum: Integers
) -> Partitions:
    names = [name for name in items[0].values if name.startswith("start ")]
    starts = np.stack([[layer.values[name] for name in names] for layer in items]).astype(np.int64)
    labels = np.unique(items[0].values["label"], return_inverse=True)[1]
    indices = tuple(index for name in wanted for index in get_args(Index) if index == name)
    return Partitions(labels, starts, indices, unit, stratum)


def _classes(
    items: Sequence[Items], statistics: Sequence[Statistic], unit: Integers, stratum: Integers
) -> ClassRatios:
    names = dict.fromkeys(name for layer in items for name in layer.values if name.startswith("truth "))
    numbers = [name.removeprefix("truth ") for name in names]
    together = statistics[0].over == "pixels"

    def sums(layer: Items, what: str) -> Floats:
        """Pixels by unit and class, or of all classes."""
        nothing = np.zeros(len(layer.keys))
        columns = [layer.values.get(f"{what} {number}", nothing) for number in numbers]
        pixels = np.zeros((len(stratum), len(numbers)))
        np.add.at(pixels, unit, np.stack(columns, axis=1))
        return pixels.sum(axis=1, keepdims=True) if together else pixels

    pairs = [statistic.column.split("/") for statistic in statistics]
    columns = [(layer, pair) for pair in pairs for layer in items]
    part, whole = (np.stack([sums(layer, pair[side]) for layer, pair in columns]) for side in range(2))
    averaged = AVERAGED.get(statistics[0].over, "shown")
    return ClassRatios(part, whole, sums(items[0], "truth"), stratum, averaged)


def _scale(items: Sequence[Items], metric: str) -> float:
    """Factor to percent: columns of items are in percent, indices and ratios of sums are fractions."""
    return 100.0 if items[0].statistics[metric].over in ("partition", *OF_PIXELS) else 1.0


def _names(items: Items) -> tuple[tuple[str, ...], ...]:
    return (items.keys, items.clusters, items.strata)


def _common(items: Sequence[Items]) -> list[Items]:
    """The common items of all layers, in the order of the first."""
    if all(_names(layer) == _names(items[0]) for layer in items):
        return list(items)
    places = [{key: row for row, key in enumerate(layer.keys)} for layer in items]
    keys = [key for key in items[0].keys if all(key in where for where in places)]
    return [layer.only(where[key] for key in keys) for layer, where in zip(items, places, strict=True)]
