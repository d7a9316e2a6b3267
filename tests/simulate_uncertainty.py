"""How often intervals and confidence sets of the best keep their promise, in simulated data.

    python -m tests.simulate_uncertainty              half an hour on one core
    python -m tests.simulate_uncertainty --only rows    one of the parts
    python -m tests.simulate_uncertainty --quick        the same tables from few samples, seconds

Prints Markdown: coverage of the intervals of hits, of means over few videos and groups of queries, of
metrics of predictions, of few shots, and of few units and shared images (`tests.simulate_units`); what the
cheapest layer loses that is shown to lose at most two points; how often a row of layers or a column of
backbones loses one that is as good as the best, also where their clusters are those of k-means; and how often
truly worse layers and backbones are told apart. Every sample of every cell of rows and tables has a seed of
its own. Items are hits where a normal number lies below a bound, which makes the share exact; numbers of the
items of a cluster are correlated by 0.3, and those of different layers of one item by 0.8, or by 0.5 where
power of backbones is asked. Shots and k-means see the 1,797 images of handwritten digits that scikit-learn
brings, with noise of each layer's own.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.datasets import load_digits

from layerboard.tasks.classification.calibration import calibration_gaps
from layerboard.tasks.classification.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.clustering.kmeans import kmeans_starts
from layerboard.tasks.framework.assess import intervals_of, score_of
from layerboard.tasks.framework.base import Items, Over, Statistic
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.arrays import Features, Floats, Integers, Mask
from layerboard.tasks.retrieval.instances import (
    InstancesConfig,
    pair_columns,
    pair_metrics,
    retrieve_instances,
)
from layerboard.tasks.statistics import linearised
from layerboard.tasks.statistics.best_set import best_set
from layerboard.tasks.statistics.linearised import placements
from layerboard.tasks.statistics.uncertainty import differences, intervals
from layerboard.tasks.statistics.weighted import Index, Partitions, Ratios, Trials
from layerboard.tasks.targets.task import FEW_LABELS
from tests import simulate_units

Kind = Literal["independent", "clustered", "stratified"]
KINDS: tuple[Kind, ...] = ("independent", "clustered", "stratified")
LARGEST, WITHIN, PAIRED = 9, 0.3, 0.8  # items of a cluster; correlations within a cluster and of layers
Part = Literal[
    "coverage",
    "means",
    "ranks",
    "predictions",
    "shots",
    "queries",
    "masks",
    "pairs",
    "neighbours",
    "defects",
    "alignment",
    "losses",
    "rows",
    "kmeans",
    "tables",
    "powers",
]
PARTS: tuple[Part, ...] = (
    "coverage",
    "means",
    "ranks",
    "predictions",
    "shots",
    "queries",
    "masks",
    "pairs",
    "neighbours",
    "defects",
    "alignment",
    "losses",
    "rows",
    "kmeans",
    "tables",
    "powers",
)
Draw = Callable[[np.random.Generator, int, float], Items]  # items of so many images, predicted so well
STRATA = 5
DRAWS = 1_000  # in each confidence set
VIDEOS = (2, 3, 4, 6, 8, 12, 30)
LANDMARKS = ((11, 0.2), (11, 0.5), (12, 0.2), (12, 0.5))  # groups of queries, and their correlation
IMAGES = ((10, 10), (12, 16), (30, 30), (20, 60), (100, 100))  # good and defective ones
AUROCS = (0.6, 0.76, 0.9, 0.97, 0.99)
GOODNESS = (0.3, 0.7, 0.95)  # of predictions: a correlation, or what plays its part
SHOTS = (1, 5, 10)
NOISES = (0.3, 0.8)  # of the images of digits that few shots are of; pixels are 0 to 1
TESTED = 200  # test images of few shots
OWN = 4  # equal layers of k-means
MAY_LOSE = 0.02  # of what the best layer scores
LAYERS = 12  # of each backbone of a table


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated."""

    samples: int  # of a cell of coverage
    units: int  # samples of a cell of `tests.simulate_units`
    rivals: tuple[int, ...]  # how many candidates are equally good
    rows: tuple[int, ...]  # samples of a row of so many
    tables: tuple[int, ...]  # samples of a table of so many
    few: int  # samples of a cell of power and of k-means
    counts: tuple[int, ...]  # items of the grid of coverage
    shares: tuple[float, ...]  # true shares of hits there
    items: tuple[int, ...]  # of rows, tables and powers
    clustered: tuple[int, ...]  # images that k-means clusters
    losing: tuple[int, ...]  # items of what a choice loses
    predicted: tuple[int, ...]  # images whose numbers, labels, confidence or things are predicted
    shots: tuple[tuple[float, int], ...]  # noise and number of shots


FULL = Size(
    samples=2_000,
    units=1_000,
    rivals=(2, 7, 12),
    rows=(2_000, 2_000, 2_000),
    tables=(1_000, 600, 600),
    few=400,
    counts=(20, 50, 100, 200, 500),
    shares=(0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.97, 0.98),
    items=(50, 200, 500),
    clustered=(300, 800),
    losing=(200, 1_000, 10_000),
    predicted=(20, 50, 200),
    shots=tuple((noise, shots) for noise in NOISES for shots in SHOTS),
)
QUICK = Size(
    samples=40,
    units=20,
    rivals=(2, 7),
    rows=(40, 40),
    tables=(8, 8),
    few=5,
    counts=(20, 200),
    shares=(0.02, 0.5, 0.97),
    items=(200,),
    clustered=(200,),
    losing=(200,),
    predicted=(50,),
    shots=((NOISES[-1], SHOTS[0]),),
)


def hits(
    random: np.random.Generator, kind: Kind, count: int, shares: Sequence[float], paired: float = PAIRED
) -> Ratios:
    """Hits of so many items by layers with these true shares; strata differ in how hard they are."""
    cluster = np.arange(count)
    if kind == "clustered":
        sizes = random.integers(1, LARGEST + 1, size=count)
        cluster = np.repeat(np.arange(count), sizes)[:count]
    units = int(cluster.max()) + 1
    stratum = np.arange(units) % STRATA if kind == "stratified" else np.zeros(units, np.int64)
    true = np.asarray(shares)
    shift = np.linspace(-0.9, 0.9, STRATA)[stratum[cluster], None] * (kind == "stratified")
    numbers = _numbers(random, cluster, len(shares), paired)
    right = numbers < ndtri(true + shift * np.minimum(true, 1 - true))
    totals = np.zeros((units, len(shares)))
    np.add.at(totals, cluster, right)
    held = np.bincount(cluster).astype(np.float64)
    return Ratios(totals, held, np.zeros(units, np.int64), stratum, Trials(held, np.ones(len(shares))))


def _numbers(random: np.random.Generator, cluster: Integers, layers: int, paired: float) -> Floats:
    """Normal numbers [items layers], correlated among layers and within clusters of several items."""

    def drawn(width: int) -> Floats:
        own = random.normal(size=(len(cluster), width))
        shared = random.normal(size=(len(cluster), width))[cluster]
        return np.asarray(np.sqrt(1 - WITHIN) * own + np.sqrt(WITHIN) * shared)

    return np.asarray(np.sqrt(paired) * drawn(1) + np.sqrt(1 - paired) * drawn(layers))


def videos(random: np.random.Generator, count: int) -> Ratios:
    """Two layers that score 0.6 in the mean of the one to five objects of so many videos."""
    objects = random.integers(1, 6, size=count)
    video = np.repeat(np.arange(count), objects)
    shared = 0.12 * random.normal(size=count)[video] + 0.15 * random.normal(size=len(video))
    return _grouped(0.6 + shared[:, None] + 0.05 * random.normal(size=(len(video), 2)), video)


def queries(random: np.random.Generator, landmarks: int, within: float) -> Ratios:
    """Average precisions of two layers, 0.5 in the mean, of five queries of each of so many landmarks."""
    landmark = np.repeat(np.arange(landmarks), 5)
    shared = np.sqrt(within) * random.normal(size=landmarks)[landmark]
    shared += np.sqrt(1 - within) * random.normal(size=len(landmark))
    own = random.normal(size=(len(landmark), 2))
    return _grouped(ndtr(1.2 * (np.sqrt(PAIRED) * shared[:, None] + np.sqrt(1 - PAIRED) * own)), landmark)


def _grouped(values: Floats, unit: Integers) -> Ratios:
    """Values of items [items layers] that are sampled in units."""
    counts = np.bincount(unit).astype(np.float64)
    totals = np.zeros((len(counts), values.shape[1]))
    np.add.at(totals, unit, values)
    return Ratios(totals, counts, np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64))


def digits(noise: float, seed: int) -> tuple[Floats, Integers]:
    """Pixels of handwritten digits [1797 64], 0 to 1, with noise, and which digits they are."""
    pixels, labels = load_digits(return_X_y=True)
    noisy = pixels / 16 + noise * np.random.default_rng(seed).normal(size=pixels.shape)
    return noisy, labels.astype(np.int64)


def clusterings(random: np.random.Generator, count: int, *, same: bool = False) -> Partitions:
    """k-means of `OWN` equally good layers that see so many digits, or of one layer with as many seeds."""
    pixels, labels = digits(0, 0)
    rows = random.choice(len(labels), count, replace=False)
    layers: list[Features] = [
        (pixels[rows] + 0.3 * random.normal(size=(count, pixels.shape[1]))).astype(np.float32)
        for _ in range(1 if same else OWN)
    ]
    starts = [
        kmeans_starts(layer, 10, seed=int(random.integers(2**31)), n_init=10)
        for layer in layers * (OWN if same else 1)
    ]
    place = np.arange(count)
    return Partitions(labels[rows], np.stack(starts), ("purity",), place, np.zeros(count, np.int64))


def coverage(size: Size, kind: Kind, count: int, share: float) -> float:
    """Share of the samples whose interval holds the true share of hits."""
    held = 0
    for seed in range(size.samples):
        low, high = intervals(hits(np.random.default_rng((seed, count)), kind, count, [share]))
        held += bool(low[0] <= share <= high[0])
    return held / size.samples


def of_means(samples: int, make: Callable[[np.random.Generator], Ratios], truth: float) -> list[float]:
    """Share of the intervals that hold the true mean, and of p-values of equal layers below 0.05."""
    held = np.zeros(2)
    for seed in range(samples):
        measured = make(np.random.default_rng(seed))
        low, high = intervals(measured)
        held += bool(low[0] <= truth <= high[0]), differences(measured, 0).p[1] < 0.05
    return [float(share) for share in held / samples]


def of_shots(samples: int, shots: int, noise: float) -> list[float]:
    """Share of the intervals that hold the expected score, and the expected difference of two layers.

    What is expected is the mean over many draws of the shots and all test images.
    """
    rule = FewShotRule(shots=(shots,), seeds=(), penalties=(), held_out=5, penalty=2.0**10)
    order = np.random.default_rng(0).permutation(len(digits(0, 0)[1]))
    pool, test = order[:900], order[900:]
    right = []
    for layer in (1, 2):
        pixels, labels = digits(noise, layer)
        drawn = [pool[draw_shots(labels[pool], 10, shots, seed)] for seed in range(200)]
        probes = [fit_few_shot(as_tensor(pixels[rows]), rule) for rows in drawn]
        truth = as_tensor(labels[test])
        right.append([probe.correct(as_tensor(pixels[test]), truth) for probe in probes])
    hit = np.asarray(right, np.float64)  # [layers draws images]
    expected, held = hit.mean(axis=(1, 2)), np.zeros(2)
    for seed in range(samples):
        random = np.random.default_rng((seed, shots))
        images = random.choice(len(test), TESTED, replace=False)
        sample = hit[:, random.choice(200, 3, replace=False)][:, :, images]
        nothing = np.zeros(TESTED, np.int64)
        by_draw = sample.mean(axis=2).T
        measured = Ratios(sample.mean(axis=1).T, np.ones(TESTED), nothing, nothing, draws=by_draw)
        low, high = intervals(measured)
        paired = differences(measured, 0)
        held += low[0] <= expected[0] <= high[0], paired.low[1] <= expected[1] - expected[0] <= paired.high[1]
    return [float(share) for share in held / samples]


def of_kmeans(samples: int, count: int, *, same: bool) -> list[float]:
    """Share of pairs of equal layers that differ by each index, and of their rows that lose one."""
    wrong = dict.fromkeys(("purity", "NMI", "ARI"), 0.0)
    lost_rows = 0
    for seed in range(samples):
        measured = clusterings(np.random.default_rng((seed, count)), count, same=same)
        for index in wrong:
            paired = differences(replace(measured, indices=(cast("Index", index),)), 0)
            wrong[index] += float((paired.p[1:] < 0.05).mean())
        inside = best_set(measured, seed=seed, draws=DRAWS)
        lost_rows += inside is not None and not inside.all()
    return [*(each / samples for each in wrong.values()), lost_rows / samples]


LOSING: dict[str, tuple[float, ...]] = {
    "12, falling by 0.5 points each": (*np.linspace(0.055, 0, LAYERS),),
    "12, falling by 1 point each": (*np.linspace(0.11, 0, LAYERS),),
    "12, all but the best 2.5 points below it": (0.025,) * (LAYERS - 1) + (0.0,),
    "60, all but the best 2.2 points below it": (0.022,) * 59 + (0.0,),
}
"""How far each layer is below the best one, the cheapest first."""


def of_losses(samples: int, count: int, layers: str) -> list[float]:
    """What the cheapest layer loses that is shown to lose little against the one with the highest score.

    Share of the samples in which it loses more than is said; true loss, in points, of it and of the other.
    """
    below = np.asarray(LOSING[layers])
    result = np.zeros(3)
    for seed in range(samples):
        measured = hits(np.random.default_rng((seed, count)), "independent", count, (0.7 - below).tolist())
        highest = int(np.argmax(measured.evaluate()[0]))
        paired = differences(measured, highest)
        safe = (paired.value >= -MAY_LOSE) & (-paired.low <= MAY_LOSE)
        safe[highest] = True
        taken = int(np.flatnonzero(safe)[0])
        result += below[taken] - below[highest] > -paired.low[taken], below[taken], below[highest]
    return [float(each) for each in result / samples]


def lost(make: Callable[[np.random.Generator], Ratios], samples: int, cell: Sequence[int]) -> float:
    """Share of the samples in which one of equal candidates is left out; cells have samples of their own."""
    wrong = 0
    for seed in range(samples):
        inside = best_set(make(np.random.default_rng((seed, *cell))), seed=seed, draws=DRAWS)
        wrong += inside is not None and not inside.all()
    return wrong / samples


def possible(measured: Ratios, owner: Integers, seed: int) -> NDArray[np.bool_]:
    """Whether each backbone may be the best, by all of its layers that its own row marks: [backbones]."""
    layers = [np.flatnonzero(owner == backbone) for backbone in range(owner.max() + 1)]
    rows = [best_set(measured.columns(places), seed=seed, draws=DRAWS) for places in layers]
    marked = np.concatenate([places[row] for places, row in zip(layers, rows, strict=True)])
    inside = best_set(measured.columns(marked), owner[marked].tolist(), seed=seed, draws=DRAWS)
    return np.ones(len(layers), np.bool_) if inside is None else inside


KNOWN = "the best layer alone, as if it were known"
PROFILES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "all equal": ((0.0,) * LAYERS,) * 2,
    "every second backbone has one good layer": ((0.0,) + (0.2,) * (LAYERS - 1), (0.0,) * LAYERS),
    "its other layers are 8 points worse": ((0.0,) + (0.08,) * (LAYERS - 1), (0.0,) * LAYERS),
    "layers fall off by 2 points each": ((*np.linspace(0, 0.22, LAYERS),), (0.0,) * LAYERS),
    KNOWN: ((0.0,), (0.0,)),
}
"""How far each layer is below the best one, of every second backbone and of the others."""


def lost_backbones(samples: int, rivals: int, count: int, profile: str) -> float:
    """Share of the tables of equal backbones in which one is left out, its layers chosen before."""
    below = np.stack([PROFILES[profile][backbone % 2] for backbone in range(rivals)])
    owner, wrong = np.repeat(np.arange(rivals), below.shape[1]), 0
    for seed in range(samples):
        random = np.random.default_rng((seed, rivals, count))
        measured = hits(random, "independent", count, (0.7 - below).ravel().tolist())
        wrong += not possible(measured, owner, seed).all()
    return wrong / samples


def found_backbones(samples: int, rivals: int, count: int, profile: str) -> float:
    """Share of the backbones told apart that are worse than another one by ten points."""
    below = np.stack([PROFILES[profile][0]] * rivals) + 0.1 * (np.arange(rivals) > 0)[:, None]
    owner, apart = np.repeat(np.arange(rivals), below.shape[1]), 0.0
    for seed in range(samples):
        random = np.random.default_rng((seed, rivals, count))
        measured = hits(random, "independent", count, (0.7 - below).ravel().tolist(), paired=0.5)
        apart += 1 - float(possible(measured, owner, seed)[1:].mean())
    return apart / samples


def power(size: Size, rivals: int, count: int, points: int) -> float:
    """Share of the worse layers that are told apart from the one that is better by so many points."""
    shares = [0.7] + [0.7 - points / 100] * (rivals - 1)
    apart = 0.0
    for seed in range(size.few):
        measured = hits(np.random.default_rng((seed, rivals, count)), "independent", count, shares)
        inside = best_set(measured, seed=seed, draws=DRAWS)
        apart += 0.0 if inside is None else 1 - float(inside[1:].mean())
    return apart / size.few


def of_ranks(samples: int, good: int, bad: int, auroc: float) -> float:
    """Share of the intervals of the AUROC of two normal distributions that hold it."""
    defect = np.arange(good + bad) < bad
    names = tuple(str(number) for number in range(good + bad))
    held = 0
    for seed in range(samples):
        random = np.random.default_rng((seed, good, bad))
        placed = placements(random.standard_normal(good + bad) + np.sqrt(2) * ndtri(auroc) * defect, defect)
        values = {"AUROC": 100 * placed.pseudo_values}
        kinds = tuple(map(str, defect))
        items = Items("images", names, names, kinds, values, {"AUROC": Statistic("AUROC", "ranks")})
        ((low, high),) = intervals_of([items])["AUROC"]
        held += bool(low <= 100 * auroc <= high)
    return held / samples


def _of_numbers(metric: Callable[[Floats, Floats], Floats]) -> Draw:
    """A metric of normal numbers and predictions that are correlated with them."""

    def draw(random: np.random.Generator, count: int, good: float) -> Items:
        truth, other = random.standard_normal((2, count))
        return _of_images(100 * metric(truth, good * (good * truth + np.sqrt(1 - good**2) * other)))

    return draw


def _of_labels(metric: Callable[[Mask, Floats], Floats], labels: int) -> Draw:
    """The mean of a metric over labels that a fifth of the images have; scores are correlated by 0.3."""

    def draw(random: np.random.Generator, count: int, good: float) -> Items:
        common, columns = random.standard_normal(count), []
        while len(columns) < labels:
            has = random.random(count) < 0.2
            scores = 2 * good * has + np.sqrt(0.3) * common + np.sqrt(0.7) * random.standard_normal(count)
            if 0 < has.sum() < count:
                columns.append(metric(has, scores))
        return _of_images(100 * np.mean(columns, axis=0), "ranks" if labels <= FEW_LABELS else "items")

    return draw


def _of_confidence(random: np.random.Generator, count: int, good: float) -> Items:
    """The calibration error of answers that are right less often than they are sure."""
    sure = random.uniform(0.2, 1, count)
    return _of_images(100 * calibration_gaps(sure, random.random(count) < sure - 0.2 * (1 - good)))


def _of_pairs(random: np.random.Generator, count: int, good: float) -> Items:
    """ROC AUC of pairs of images, four of each thing, in 16 dimensions."""
    thing = np.arange(count) // 4
    features = 0.6 * good * random.standard_normal((count, 16))[thing] + random.standard_normal((count, 16))
    nothing = np.full(count, "")
    rows, retrieved = retrieve_instances(features.astype(np.float32), thing.astype(str), nothing, nothing)
    rule: InstancesConfig = config_of(STANDARD, "instances")
    column = pair_metrics(retrieved.pairs, rule)[0]["ROC AUC"] + pair_columns(retrieved, rule)["ROC AUC"]
    return _of_images(column, "shares", tuple(thing[rows].astype(str)))


def _of_images(column: Floats, over: Over = "items", clusters: tuple[str, ...] = ()) -> Items:
    names = tuple(str(number) for number in range(len(column)))
    kinds, statistics = ("",) * len(names), {"": Statistic("", over)}
    return Items("images", names, clusters or names, kinds, {"": column}, statistics)


PREDICTIONS: dict[str, Draw] = {
    "R2": _of_numbers(linearised.r2_values),
    "rho": _of_numbers(linearised.rank_correlation_values),
    "macro AP of 8 labels": _of_labels(linearised.average_precision_values, 8),
    "macro AUROC of 8 labels": _of_labels(linearised.area_under_roc, 8),
    "macro AP of 2 labels": _of_labels(linearised.average_precision_values, 2),
    "macro AUROC of 2 labels": _of_labels(linearised.area_under_roc, 2),
    "calibration error": _of_confidence,
    "ROC AUC of pairs": _of_pairs,
}


def of_predictions(samples: int, draw: Draw, count: int, good: float) -> float:
    """Share of the intervals of a metric of so many images that hold what it is on average."""
    every = [draw(np.random.default_rng((seed, count)), count, good) for seed in range(samples)]
    expected = np.mean([score_of(items, "") for items in every])
    ends = np.array([intervals_of([items])[""][0] for items in every])
    return float(np.mean((ends[:, 0] <= expected) & (expected <= ends[:, 1])))


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Lines of a Markdown table, shares as percent."""
    yield "| " + " | ".join(map(str, head)) + " |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield (
            "| "
            + " | ".join(f"{100 * one:.1f}" if isinstance(one, float) else str(one) for one in row)
            + " |"
        )
    yield ""


def report(size: Size, parts: Sequence[Part] = PARTS) -> Iterator[str]:
    """The tables of some parts, line by line."""
    yield from _coverages(size, parts)
    for title, head, rows in simulate_units.tables(size.units, size.units < FULL.units, parts):
        yield f"{title}, in percent ({size.units:,} samples a cell):\n"
        yield from table(head, rows)
    yield from _choices(size, parts)


def _coverages(size: Size, parts: Sequence[Part]) -> Iterator[str]:
    """How often intervals hold the truth."""
    rows: list[list[object]]
    if "coverage" in parts:
        yield f"Coverage of 95 % intervals of hits, in percent ({size.samples:,} samples a cell):\n"
        rows = [
            [kind, count, *(coverage(size, kind, count, share) for share in size.shares)]
            for kind in KINDS
            for count in size.counts
        ]
        yield from table(["items", "n", *(f"p {share:g}" for share in size.shares)], rows)
    if "means" in parts:
        yield f"Means over units of several items, in percent ({size.samples:,} samples a cell):\n"
        rows = [
            [f"{count} videos", *of_means(size.samples, lambda random, n=count: videos(random, n), 0.6)]  # type: ignore[misc]
            for count in VIDEOS
        ]
        rows += [
            [
                f"{count} landmarks, correlation {within:g}",
                *of_means(size.samples, lambda random, n=count, r=within: queries(random, n, r), 0.5),  # type: ignore[misc]
            ]
            for count, within in LANDMARKS
        ]
        yield from table(["units", "covered", "equal layers differ"], rows)
    if "ranks" in parts:
        yield f"Coverage of 95 % intervals of AUROC, in percent ({size.samples:,} samples a cell):\n"
        rows = [[*images, *(of_ranks(size.samples, *images, auroc) for auroc in AUROCS)] for images in IMAGES]
        yield from table(["good", "defective", *(f"{auroc:g}" for auroc in AUROCS)], rows)
    if "predictions" in parts:
        yield f"Coverage of 95 % intervals of predictions, in percent ({size.samples:,} samples a cell):\n"
        rows = [
            [name, count, *(of_predictions(size.samples, draw, count, good) for good in GOODNESS)]
            for name, draw in PREDICTIONS.items()
            for count in size.predicted
        ]
        yield from table(["metric", "images", *(f"{good:g}" for good in GOODNESS)], rows)
    if "shots" in parts:
        yield f"Few shots, three draws, {TESTED} test images, in percent ({size.samples:,} samples a cell):\n"
        rows = [[shots, f"{noise:g}", *of_shots(size.samples, shots, noise)] for noise, shots in size.shots]
        yield from table(["shots", "noise", "covered", "difference covered"], rows)


def _choices(size: Size, parts: Sequence[Part]) -> Iterator[str]:
    """What is lost, and what is found, where the best is chosen."""
    rows: list[list[object]]
    heads = [f"{rivals} equal" for rivals in size.rivals]
    if "losses" in parts:
        yield f"The cheapest layer shown to lose at most 2 points ({size.samples:,} samples a cell):\n"
        rows = [
            [layers, count, *of_losses(size.samples, count, layers)]
            for layers in LOSING
            for count in size.losing
        ]
        yield from table(["layers", "n", "loses more than said, %", "loses", "the highest loses"], rows)
    if "kmeans" in parts:
        yield f"Equal clusterings by k-means that differ, in percent ({size.few:,} samples a cell):\n"
        rows = [
            [name, count, *of_kmeans(size.few, count, same=same)]
            for count in size.clustered
            for name, same in (("other features", False), ("other seeds", True))
        ]
        yield from table(["layers", "n", "purity", "NMI", "ARI", f"rows of {OWN} that lose one"], rows)
    if "rows" in parts:
        yield (
            f"Rows that lose a layer as good as the best, in percent ({_listed(size.rows)} samples a cell):\n"
        )
        yield from table(["items", "n", "p", *heads], _lost_rows(size))
    if "tables" in parts:
        yield (
            f"Tables that lose a backbone as good as the best, {LAYERS} layers each "
            f"({_listed(size.tables)} samples a cell):\n"
        )
        yield from table(["layers of a backbone", "n", *heads], _lost_tables(size))
    if "powers" in parts:
        yield "Layers told apart that are worse by 2, 5 and 10 points (of 70 %), in percent:\n"
        points = (f"{points} points" for points in (2, 5, 10))
        yield from table(["candidates", "n", *points], _powers(size))
        yield f"Backbones of {LAYERS} layers told apart that are worse by 10 points, n = 200, in percent:\n"
        rows = [
            [profile, *(found_backbones(size.few, rivals, 200, profile) for rivals in size.rivals)]
            for profile in PROFILES
        ]
        yield from table(["layers of each", *(f"{rivals} backbones" for rivals in size.rivals)], rows)


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(f"{count:,}" for count in counts)


def _lost_rows(size: Size) -> Iterator[list[object]]:
    for number, kind in enumerate(KINDS):
        for count in size.items:
            for share in (0.5, 0.95):
                errors = [
                    lost(
                        lambda random, n=rivals: hits(random, kind, count, [share] * n),  # type: ignore[misc]  # noqa: B023
                        samples,
                        (number, count, int(100 * share), rivals),
                    )
                    for rivals, samples in zip(size.rivals, size.rows, strict=True)
                ]
                yield [kind, count, f"{share:g}", *errors]


def _lost_tables(size: Size) -> Iterator[list[object]]:
    for profile in [name for name in PROFILES if name != KNOWN]:
        for count in size.items[-2:]:
            samples = zip(size.rivals, size.tables, strict=True)
            yield [profile, count, *(lost_backbones(many, n, count, profile) for n, many in samples)]


def _powers(size: Size) -> Iterator[list[object]]:
    for rivals in size.rivals:
        for count in (*size.items, 10 * size.items[-1]):
            yield [rivals, count, *(power(size, rivals, count, points) for points in (2, 5, 10))]


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Simulate intervals and confidence sets of the best.")
    parser.add_argument("--quick", action="store_true", help="few samples, in seconds")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the parts")
    given = parser.parse_args()
    for line in report(QUICK if given.quick else FULL, given.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
