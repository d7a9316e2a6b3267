"""Uncertainty of a task's scores: its per-item values as units for intervals, tests and splits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

import numpy as np

from layerboard.tasks.framework.base import AVERAGED, OF_PIXELS, Items, Over, Statistic
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.best_set import best_set
from layerboard.tasks.statistics.uncertainty import (
    Differences,
    WeightedScores,
    choose_on_halves,
    differences,
    intervals,
)
from layerboard.tasks.statistics.weighted import ClassRatios, Index, Partitions, Ratios, Trials

HIT = 100.0  # value of a hit in the columns of items; a miss is 0
# means of strata in percent, with arbitrary item values
RANKED: tuple[Over, ...] = ("ranks", "shares", "correlations")
FEW = 30  # below as many units mean errors have no interval: a few large ones decide them; by simulation
BOUNDS: Mapping[Over, float] = {"explained": 100.0, "errors": 0.0}  # of scores that have only one
MANY = 1e6  # number of trials of an item of shares: so many that they add no variance of their own
SHARED = 0.95  # least share of common items of two scores that are compared


class Chosen(NamedTuple):
    """Result of one score among its competitors, in its unit."""

    chosen: float  # share of 100 random halves of the units on which it scores best; NaN without halves
    held_out: float  # its mean score on the other halves in those splits; NaN if there are none
    # whether it may be the best: such scores, and the best score, contain the true best with 95 % probability
    tied: bool


def assess(items: Sequence[Items], metric: str) -> list[Chosen]:
    """Held-out scores and possible best layers, for layers that compete in one metric.

    If the items of the layers differ a little, such as regions that vanish in a coarser grid, the common
    items are used.
    """
    measured, scale = measure(_common(items), metric), _scale(items, metric)
    (chosen, held_out, best), possible = choose_on_halves(measured), best_set(measured)
    tied = np.zeros(len(items), dtype=bool) if possible is None else possible
    rows = zip(chosen.tolist(), held_out.tolist(), tied.tolist(), strict=True)
    return [
        Chosen(share, scale * score, may_be_best and row != best)
        for row, (share, score, may_be_best) in enumerate(rows)
    ]


def intervals_of(items: Sequence[Items]) -> dict[str, list[tuple[float, float]]]:
    """For every metric the ends of the 95 % confidence interval of each layer; NaN for too few units.

    Layers with the same items, and metrics with the same kind of average, are evaluated together. Also NaN if
    a layer lacks the metric, and for errors of fewer than `FEW` units.
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
            if layers[0].statistics[metrics[0]].over == "errors" and len({*layers[0].clusters}) < FEW:
                both[:] = np.nan
            for metric, rows in zip(metrics, both.reshape(len(metrics), len(places), 2), strict=True):
                ends.setdefault(metric, np.full((len(items), 2), np.nan))[places] = rows
    return {metric: [(low, high) for low, high in rows.tolist()] for metric, rows in ends.items()}


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


def confidence_set(rivals: Sequence[Sequence[Items]], metric: str) -> list[bool | None]:
    """Whether each of several rivals (backbones) may be the best in one metric, at 95 % confidence.

    A rival is given by the items of its layers; its score is that of its best layer. The first rival has the
    highest score. Later ones are compared on the items that they share with all before them. The result is
    None for rivals with fewer than 95 % common items or other statistics, and if there are too few units.
    """
    joined = [0]
    for index in range(1, len(rivals)):
        if _comparable([layer for rival in (*joined, index) for layer in rivals[rival]], metric):
            joined.append(index)
    layers = [layer for index in joined for layer in rivals[index]]
    owner = [number for number, index in enumerate(joined) for _ in rivals[index]]
    inside = best_set(measure(_common(layers), metric), owner) if len(joined) > 1 else None
    possible = {} if inside is None else dict(zip(joined, inside.tolist(), strict=True))
    return [possible.get(index) for index in range(len(rivals))]


def _comparable(items: Sequence[Items], metric: str) -> bool:
    """Whether all have the same statistic for the metric and share most of their items."""
    first = items[0].statistics.get(metric)
    if first is None or any(layer.statistics.get(metric) != first for layer in items):
        return False
    shared = set(items[0].keys).intersection(*(layer.keys for layer in items[1:]))
    return len(shared) >= SHARED * max(len(layer.keys) for layer in items)


def paired_differences(items: Sequence[Items], metric: str, reference: int = 0) -> Differences | None:
    """Paired differences of several scores from one of them, in their unit.

    They use the common items; None if these are fewer than 95 % of the items of any score.
    """
    if not _comparable(items, metric):
        return None
    scale = _scale(items, metric)
    paired = differences(measure(_common(items), metric), reference)
    return Differences(scale * paired.value, scale * paired.low, scale * paired.high, paired.p)


def measure(items: Sequence[Items], *metrics: str) -> WeightedScores:
    """Scores as functions of weighted units: the first metric for every layer, then the next metric.

    The metrics must have the same kind of average. Scores of partitions are fractions.

    Raises:
        ValueError: The layers do not have the same items.
    """
    first = items[0]
    if any(_names(layer) != _names(first) for layer in items):
        raise ValueError(f"expected the same items for all layers of {metrics[0]}")
    statistics = [first.statistics[metric] for metric in metrics]
    names, unit = np.unique(np.asarray(first.clusters, str), return_inverse=True)
    stratum = np.zeros(len(names), np.int64)
    stratum[unit] = np.unique(np.asarray(first.strata, str), return_inverse=True)[1]
    (over,) = {statistic.over for statistic in statistics}
    if over in OF_PIXELS:
        return _classes(items, statistics, unit, stratum)
    if over == "partition":
        return _partitions(items, [statistic.column for statistic in statistics], unit, stratum)
    columns = [(layer, statistic.column) for statistic in statistics for layer in items]
    measured = _ratios([layer.values[name] for layer, name in columns], over, unit, stratum)
    drawn = [name for name in first.values if name.startswith(f"{statistics[0].column} draw ")]
    if over != "draws" or len(drawn) < 2:
        return measured
    draws = [
        [layer.values[f"{name} draw {row}"] for layer, name in columns] for row in range(1, len(drawn) + 1)
    ]
    return replace(measured, draws=np.mean(draws, axis=2))


def _ratios(columns: Sequence[Floats], over: Over, unit: Integers, stratum: Integers) -> Ratios:
    values = np.stack(columns, axis=1).astype(np.float64)
    there = ~np.isnan(values)
    if (there != there[:, :1]).any():
        raise ValueError("expected values of the same items in all layers")
    totals = np.zeros((len(stratum), values.shape[1]))
    np.add.at(totals, unit, np.where(there, values, 0.0))
    counts: Floats = np.bincount(unit, there[:, 0], len(stratum)).astype(np.float64)
    # a percentage of pairs has the interval of a hit rate with the same variance
    hits = ((values == 0) | (values == HIT) | ~there).all(axis=0) & (over not in BOUNDS) | (over in RANKED)
    many, miss = over in ("shares", "correlations"), -HIT if over == "correlations" else 0.0
    trials = Trials(counts * MANY if many else counts, np.where(hits, HIT, np.nan), miss)
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
    part, whole = (
        np.stack([sums(layer, pair[side]) for pair in pairs for layer in items]) for side in range(2)
    )
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
