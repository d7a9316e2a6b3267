"""How often intervals and confidence sets of the best keep their promise, in simulated data.

    python -m workshop.simulations.uncertainty              half an hour on one core
    python -m workshop.simulations.uncertainty --only rows    one of the parts
    python -m workshop.simulations.uncertainty --quick        the same tables from few samples, seconds

Prints Markdown: coverage of the intervals of hits, of means over few videos and groups of queries, of metrics
of predictions, of few shots, and of few units and shared images (`workshop.simulations.units`); whether
layers of k-means differ that are equal; how often what is said of layers against the best one is wrong, what
it finds, and what the cheapest layer loses that is said to lose at most two points. Items are hits where a
normal number lies below a bound, which makes the share exact; numbers of the items of a cluster are
correlated by 0.3, and those of different layers of one item by 0.8. Shots and k-means see the 1,797 images of
handwritten digits that scikit-learn brings, with noise of each layer's own; so do probes that are fitted in
folds (`workshop.simulations.folds`).
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.datasets import load_digits

from layerboard.tasks.classification.calibration import calibration_gaps
from layerboard.tasks.classification.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.clustering.kmeans import kmeans_starts
from layerboard.tasks.framework.assess import intervals_of, score_of
from layerboard.tasks.framework.base import Items, Over, Statistic
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.retrieval.instances import (
    InstancesConfig,
    pair_columns,
    pair_metrics,
    retrieve_instances,
)
from layerboard.tasks.statistics.linearised import placements
from layerboard.tasks.statistics.mcb import compare_with_best
from layerboard.tasks.statistics.uncertainty import differences, intervals
from layerboard.tasks.statistics.weighted import Index, Partitions, Ratios, Trials
from workshop.simulations import best, folds, ranks, units
from workshop.simulations.folds import FittedCell

Kind = Literal["independent", "clustered", "stratified"]
KINDS: tuple[Kind, ...] = ("independent", "clustered", "stratified")
LARGEST, WITHIN, PAIRED = 9, 0.3, 0.8  # items of a cluster; correlations within a cluster and of layers
Part = Literal[
    "coverage",
    "means",
    "ranks",
    "predictions",
    "folds",
    "shots",
    "queries",
    "masks",
    "pairs",
    "neighbours",
    "defects",
    "alignment",
    "kmeans",
    "best",
    "groups",
    "cheapest",
    "failures",
    "order",
]
PARTS: tuple[Part, ...] = get_args(Part)
Draw = Callable[[np.random.Generator, int, float], Items]  # items of so many images, predicted so well
STRATA = 5
VIDEOS = (2, 3, 4, 6, 8, 12, 30)
LANDMARKS = ((11, 0.2), (11, 0.5), (12, 0.2), (12, 0.5))  # groups of queries, and their correlation
IMAGES = ((10, 10), (12, 16), (30, 30), (20, 60), (100, 100))  # good and defective ones
AUROCS = (0.6, 0.76, 0.9, 0.97, 0.99)
GOODNESS = (0.3, 0.7, 0.95)  # of predictions: a correlation, or what plays its part
SHOTS = (1, 5, 10)
NOISES = (0.3, 0.8)  # of the images of digits that few shots are of; pixels are 0 to 1
TESTED = 200  # test images of few shots
OWN = 4  # equal layers of k-means


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated."""

    samples: int  # of a cell of coverage
    units: int  # samples of a cell of `workshop.simulations.units`
    few: int  # samples of a cell of k-means, of the cheapest layer and of failures
    layers: int  # samples of a cell of layers that are compared with the best
    many_layers: int  # the same of more than 12 layers
    counts: tuple[int, ...]  # items of the grid of coverage
    shares: tuple[float, ...]  # true shares of hits there
    best: tuple[int, ...]  # items of layers that are compared with the best
    items: tuple[int, ...]  # of ranks
    ordered: int  # samples of a cell of ranks and of what they resolve
    clustered: tuple[int, ...]  # images that k-means clusters
    losing: tuple[int, ...]  # items of what a choice loses
    predicted: tuple[int, ...]  # images whose numbers, labels, confidence or things are predicted
    shots: tuple[tuple[float, int], ...]  # noise and number of shots
    folds: int  # samples of a cell of probes that are fitted in folds
    fitted: tuple[FittedCell, ...]  # what they predict


FULL = Size(
    samples=2_000,
    units=1_000,
    few=400,
    layers=1_000,
    many_layers=200,
    ordered=1_000,
    counts=(20, 50, 100, 200, 500),
    shares=(0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.97, 0.98),
    best=(60, 100, 300, 1_000, 2_000),
    items=(50, 200, 500),
    clustered=(300, 800),
    losing=(200, 1_000, 10_000),
    predicted=(20, 50, 200),
    shots=tuple((noise, shots) for noise in NOISES for shots in SHOTS),
    folds=1_000,
    fitted=folds.CELLS,
)
QUICK = Size(
    samples=20,
    units=20,
    few=3,
    layers=6,
    many_layers=2,
    ordered=6,
    counts=(20, 200),
    shares=(0.02, 0.5, 0.97),
    best=(100,),
    items=(200,),
    clustered=(200,),
    losing=(200,),
    predicted=(50,),
    shots=((NOISES[-1], SHOTS[0]),),
    folds=4,
    fitted=(FittedCell("a number", 20), FittedCell("2 labels", 50)),
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
    images = np.arange(count)
    return Partitions(labels[rows], np.stack(starts), ("purity",), images, np.zeros(count, np.int64))


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
        truth = labels[test]
        right.append([probe.classified(as_tensor(pixels[test]))[0] == truth for probe in probes])
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
    """Share of pairs of equal layers that differ by each index, and of samples that lose a given one."""
    wrong = dict.fromkeys(("purity", "NMI", "ARI"), 0.0)
    lost = 0
    for seed in range(samples):
        measured = clusterings(np.random.default_rng((seed, count)), count, same=same)
        for index in wrong:
            paired = differences(replace(measured, indices=(cast("Index", index),)), 0)
            wrong[index] += float((paired.p[1:] < 0.05).mean())
        compared = compare_with_best(measured, seed)
        lost += compared is not None and not compared.maybe[0]
    return [*(each / samples for each in wrong.values()), lost / samples]


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


PREDICTIONS: dict[str, Draw] = {"calibration error": _of_confidence, "ROC AUC of pairs": _of_pairs}


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
            + " | ".join(f"{100 * cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row)
            + " |"
        )
    yield ""


def promises(size: Size, parts: Sequence[Part] = PARTS) -> Iterator[str]:
    """The tables of some parts, line by line."""
    yield from _coverages(size, parts)
    for title, head, rows in units.tables(size.units, size.units < FULL.units, parts):
        yield f"{title}, in percent ({size.units:,} samples a cell):\n"
        yield from table(head, rows)
    yield from _choices(size, parts)
    if "order" in parts:
        for title, heads, rows in ranks.rank_tables(size.ordered, size.items, _drawn):
            yield f"{title}\n"
            yield from table(heads, rows)


def _drawn(random: np.random.Generator, count: int, shares: Sequence[float]) -> Ratios:
    return hits(random, "independent", count, shares)


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
    if "folds" in parts:
        yield f"Probes fitted in folds, in percent ({size.folds:,} samples a cell):\n"
        rows = [row for cell in size.fitted for row in folds.of_cell(size.folds, cell)]
        yield from table(folds.HEAD, rows)
    if "shots" in parts:
        yield f"Few shots, three draws, {TESTED} test images, in percent ({size.samples:,} samples a cell):\n"
        rows = [[shots, f"{noise:g}", *of_shots(size.samples, shots, noise)] for noise, shots in size.shots]
        yield from table(["shots", "noise", "covered", "difference covered"], rows)


def _choices(size: Size, parts: Sequence[Part]) -> Iterator[str]:
    """What is said of the best layer where it is chosen on the same data."""
    rows: list[list[object]]
    if "kmeans" in parts:
        yield f"Equal clusterings by k-means that differ, in percent ({size.few:,} samples a cell):\n"
        rows = [
            [name, count, *of_kmeans(size.few, count, same=same)]
            for count in size.clustered
            for name, same in (("other features", False), ("other seeds", True))
        ]
        yield from table(["layers", "n", "purity", "NMI", "ARI", "a given one of 4 lost"], rows)
    if "best" in parts:
        yield "Statements on layers, in percent of the samples:\n"
        head = ["layers", "n", "samples", "best lost", "some loss larger", "of one layer", "of the highest"]
        head += ["a given equal one lost", "5 to 10 points worse, told apart"]
        yield from table(
            head, best.best_layer_rows(size.best, size.layers, size.many_layers, mini=size is FULL)
        )
    if "groups" in parts:
        yield f"Equally good backbones, in percent of the samples ({size.layers:,} a cell):\n"
        head = ["layers", "n", "interval misses", "first is called higher", "second is"]
        yield from table(head, best.group_rows(size.best, size.layers))
    if "cheapest" in parts:
        yield f"The cheapest layer that loses at most 2 points ({size.few:,} samples a cell):\n"
        head = ["layers", "n", "there is one, %", "it loses more than said, %", "it loses, points"]
        yield from table(head, best.cheapest_rows(size.losing, size.few))
    if "failures" in parts:
        yield f"Layers that fail in a tenth of the videos, in percent of the samples ({size.few:,} a cell):\n"
        head = ["layers", "videos", "some loss larger", "of one layer", "of the highest"]
        yield from table(head, best.failure_rows((6, 12, 30), size.few))


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Simulate intervals and confidence sets of the best.")
    parser.add_argument("--quick", action="store_true", help="few samples, in seconds")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the parts")
    given = parser.parse_args()
    for line in promises(QUICK if given.quick else FULL, given.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
