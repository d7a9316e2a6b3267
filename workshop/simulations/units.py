"""Coverage of intervals where units are few, share images, or are also neighbours of each other.

Part of `workshop.simulations.uncertainty`. Every sample draws new images, videos, things, or pairs of images;
both layers are equally good, since the noise of each is drawn alike.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

import numpy as np
import torch
from scipy.special import ndtri

from layerboard.tasks.classification.knn import neighbour_influence, outside, room_for
from layerboard.tasks.framework.assess import intervals_of, paired_differences, score_of
from layerboard.tasks.framework.base import NEIGHBOUR, PAIRED, Items, Over, Statistic
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.metrics.neighbours import nearest, top_k_correct, vote
from layerboard.tasks.retrieval.instances import retrieve_instances
from layerboard.tasks.similarity.metric import CkaAccumulator, centred_gram
from layerboard.tasks.statistics import linearised

Cell = TypeVar("Cell")
Part = Literal["queries", "masks", "pairs", "neighbours", "defects", "alignment"]
Layers = list[Items]  # of two layers that are equally good
NORMAL = 1.959964
OWN = 0.45  # noise of each layer; that of the images has the rest of a variance of 1
SHARED = float(np.sqrt(1 - OWN**2))


def _items(
    unit: str,
    layers: Sequence[dict[str, Floats]],
    over: Over,
    clusters: Sequence[object],
    strata: object = "",
) -> Layers:
    """Items of every layer, with a statistic for each metric that is no further column."""
    keys = tuple(str(number) for number in range(len(clusters)))
    within = (strata,) * len(keys) if isinstance(strata, str) else tuple(map(str, strata))  # type: ignore[call-overload]
    made = []
    for values in layers:
        metrics = [name for name in values if name not in PAIRED and NEIGHBOUR not in name]
        statistics = {name: Statistic(name, over) for name in metrics}
        made.append(Items(unit, keys, tuple(map(str, clusters)), within, values, statistics))
    return made


# ---- queries of few things, objects of few videos ---------------------------------------------------


def things(random: np.random.Generator, count: int, good: float) -> Layers:
    """Retrieval among four images of each of so many things and 40 other images; things differ in size."""
    thing, size = np.repeat(np.arange(count), 4), good * (0.5 + random.gamma(2, 0.25, count))
    own = (size[:, None] * random.normal(size=(count, 16)))[thing]
    noise, others = random.normal(size=(2, len(thing), 16))[0], 1.2 * random.normal(size=(40, 16))
    names = np.concatenate([thing.astype(str), np.full(40, "")])
    nothing, columns = np.full(len(names), ""), []
    for _ in range(2):
        features = np.concatenate([own + SHARED * noise + OWN * random.normal(size=noise.shape), others])
        _, rankings = retrieve_instances(features.astype(np.float32), names, nothing, nothing)
        columns.append({"mAP": 100 * rankings.average_precision, "R-precision": 100 * rankings.r_precision})
    return _items("queries", columns, "items", [*thing])


def objects(random: np.random.Generator, count: int, good: float) -> Layers:
    """J&F of one to five objects in each of so many videos."""
    video = np.repeat(np.arange(count), random.integers(1, 6, count))
    mean = random.beta(8 * good, 8 * (1 - good), count)[video].clip(0.001, 0.999)
    score = random.beta(15 * mean, 15 * (1 - mean))
    columns = [{"J&F": 100 * (score + 0.03 * random.normal(size=len(video))).clip(0, 1)} for _ in range(2)]
    return _items("objects", columns, "items", [*video])


# ---- mean IoU of few images -------------------------------------------------------------------------


def masks(random: np.random.Generator, count: int, good: float, classes: int, most: int) -> Layers:
    """Pixels of one to ``most`` classes an image; of so many classes the first are the most frequent."""
    share = 1 / np.arange(1.0, classes + 1)
    share /= share.sum()
    hardness = 0.8 * ndtri((np.arange(classes) + 0.5) / classes)[np.argsort(np.sin(np.arange(classes)))]
    shown, guess = np.zeros((count, classes)), random.choice(classes, count, p=share)
    for row in range(count):
        some = random.choice(classes, random.integers(1, most + 1), replace=False, p=share)
        shown[row, some] = 50 + np.floor(50_000 * random.dirichlet(np.ones(len(some))))
    alike = hardness + 0.7 * random.normal(size=(count, 1)) + 0.7 * random.normal(size=(count, classes))
    columns = []
    for _ in range(2):
        odds = alike + 0.4 * random.normal(size=(count, 1)) + 0.4 * random.normal(size=(count, classes))
        hit = np.floor(shown / (1 + np.exp(-odds) * (1 - good) / good))
        union = shown.copy()
        # half of the missed pixels are taken for one other class
        union[np.arange(count), guess] += np.floor((shown - hit).sum(axis=1) / 2)
        values = {f"truth {name}": shown[:, name] for name in range(classes)}
        values |= {f"inter {name}": hit[:, name] for name in range(classes)}
        columns.append(values | {f"union {name}": union[:, name] for name in range(classes)})
    made = _items("images", columns, "classes", range(count))
    statistics = {"mIoU": Statistic("inter/union", "classes")}
    return [Items(each.unit, each.keys, each.clusters, each.strata, each.values, statistics) for each in made]


# ---- pairs that share images ------------------------------------------------------------------------


def pairs(random: np.random.Generator, count: int, categories: int, of_images: float) -> Layers:
    """Six keypoints of every ordered pair of so many images of each category, of which 30 % are found.

    ``of_images`` is the share of either image in the variance of the number that decides.
    """
    image = np.array([(a, b) for a in range(count) for b in range(count) if a != b])
    every = np.concatenate([image + category * count for category in range(categories)])
    pair = np.repeat(np.arange(len(every)), 6)
    sides = every[pair].T

    def numbers(width: int) -> Floats:
        first, second = np.sqrt(of_images) * random.normal(size=(2, categories * count, width))
        of_pair = np.sqrt(0.3) * random.normal(size=(len(every), width))[pair]
        own = np.sqrt(0.7 - 2 * of_images) * random.normal(size=(len(pair), width))
        return np.asarray(first[sides[0]] + second[sides[1]] + of_pair + own)

    number = np.sqrt(0.6) * numbers(1) + np.sqrt(0.4) * numbers(2)
    images = dict(zip(PAIRED, sides.astype(np.float64), strict=True))
    columns = [{"PCK": 100.0 * (column < ndtri(0.3)), **images} for column in number.T]
    return _items("keypoints", columns, "strata", [*pair], (sides[0] // count).tolist())


# ---- leave-one-out ----------------------------------------------------------------------------------


def voters(random: np.random.Generator, per: int, classes: int, each: int, good: float) -> Layers:
    """20-NN of ``per`` units of each class, images or patients with so many images, tested by the others."""
    centre = np.random.default_rng(99).normal(size=(classes, 16))
    unit = np.repeat(np.arange(per * classes), each)
    labels = unit % classes
    common = good * centre[labels] + 0.7 * (each > 1) * random.normal(size=(per * classes, 16))[unit]
    common += SHARED * random.normal(size=(len(unit), 16))
    columns, (room, wide) = [], room_for(unit, 200)
    for _ in range(2):
        features = (common + OWN * random.normal(size=common.shape)).astype(np.float32)
        near = outside(nearest(features, features, wide), unit, unit, room)
        right = top_k_correct(vote(near, labels, 20, classes, 0.07), labels, 1)
        moved = neighbour_influence(near, labels, unit, 20, classes, 0.07)[0]
        columns.append({"top-1": 100.0 * right, f"top-1{NEIGHBOUR}": 100 * moved})
    return _items("images", columns, "items", [*unit])


# ---- defects ----------------------------------------------------------------------------------------


def defects(random: np.random.Generator, good: int, bad: int, auroc: float) -> Layers:
    """Metrics of normal scores of so many good and defective images."""
    defect, shared = np.arange(good + bad) < bad, SHARED * random.normal(size=good + bad)
    columns = []
    for _ in range(2):
        scores = shared + OWN * random.normal(size=good + bad) + np.sqrt(2) * ndtri(auroc) * defect
        kinds = {
            "AP": linearised.average_precision_values(defect, scores),
            "F1max": linearised.f1_max_values(defect, scores),
        }
        values = {
            name: 100 * linearised.of_either_kind(float(each.mean()), each, defect)
            for name, each in kinds.items()
        }
        columns.append({"AUROC": 100 * linearised.placements(scores, defect).pseudo_values, **values})
    # not "curves": few defects then have an interval too, which shows why the task prints none
    return _items("images", columns, "ranks", range(good + bad), defect.tolist())


# ---- CKA --------------------------------------------------------------------------------------------


def alignment(random: np.random.Generator, count: int, batch: int, alike: float) -> tuple[float, float]:
    """CKA of two layers of so many images, in batches, and its standard error."""
    common = random.normal(size=(count, 24)) * np.geomspace(3, 0.3, 24)
    accumulator = CkaAccumulator(errors=True)
    mixed = [
        np.sqrt(alike) * common
        + np.sqrt(1 - alike) * random.normal(size=common.shape) * np.geomspace(3, 0.3, 24)
        for _ in range(2)
    ]
    for start in range(0, count, batch):
        rows = [torch.from_numpy(features[start : start + batch]) for features in mixed]
        accumulator.add(torch.stack([centred_gram(features) for features in rows]))
    return float(accumulator.matrix()[0, 1]), float(accumulator.standard_error()[0, 1])


# ---- tables -----------------------------------------------------------------------------------------


def of_items(samples: int, draw: Callable[..., Layers], *cell: float) -> Iterator[list[object]]:
    """For each metric: coverage, mean half width, shares of ends outside and of equal layers that differ."""
    every = [draw(np.random.default_rng(seed), *cell) for seed in range(samples)]
    for metric in every[0][0].statistics:
        expected = np.mean([score_of(layers[0], metric) for layers in every])
        low, high = np.array([intervals_of(layers[:1])[metric][0] for layers in every]).T
        paired = [paired_differences(layers, metric) for layers in every]
        differ = [each is not None and each.p[1] < 0.05 for each in paired]
        held, out = (low <= expected) & (expected <= high), (low < 0) | (high > 100)
        half = f"{np.mean(high - low) / 2:.1f}"
        yield [metric, f"{expected:.0f}", float(held.mean()), half, float(out.mean()), float(np.mean(differ))]


def of_alignment(samples: int, count: int, batch: int, alike: float) -> list[object]:
    """Coverage of 95 % intervals of CKA, and their half width."""
    value, error = np.array(
        [alignment(np.random.default_rng((seed, count)), count, batch, alike) for seed in range(samples)]
    ).T
    held = np.abs(value - value.mean()) <= NORMAL * error
    return [f"{value.mean():.2f}", float(held.mean()), f"{NORMAL * error.mean():.3f}"]


QUERIES = [("things", things, count, good) for count in (5, 10, 20) for good in (0.7, 2.0)]
VIDEOS = [("videos", objects, count, good) for count in (3, 5, 10, 30) for good in (0.5, 0.8, 0.93)]
SEGMENTED = [(20, 4), (5, 4), (20, 12), (80, 4)]  # classes, and the most of them in an image
IMAGES = ((27, 1), (10, 3), (12, 6))  # of a category, and categories
VOTERS = ((12, 5, 1), (8, 5, 4), (6, 10, 1))  # units of a class, classes, images of a unit
KINDS = ((10, 4), (40, 4), (60, 8), (10, 10), (30, 30))  # good images and defective ones


def tables(
    samples: int, quick: bool, parts: Sequence[str]
) -> Iterator[tuple[str, list[str], list[list[object]]]]:
    """Title, head and rows of each of these parts."""

    def taken(cells: Sequence[Cell]) -> Sequence[Cell]:
        return cells[:1] if quick else cells

    ends = ["metric", "expected", "covered", "half width", "ends outside", "equal layers differ"]
    if "queries" in parts:
        cells = [*taken(QUERIES), *taken(VIDEOS)]
        rows = [
            [f"{count} {name}", *row]
            for name, make, count, good in cells
            for row in of_items(samples, make, count, good)
        ]
        yield "Queries of few things, objects of few videos", ["sampled", *ends], rows
    if "masks" in parts:
        rows = [
            [count, f"{classes}, 1 to {most} an image", *row]
            for classes, most in taken(SEGMENTED)
            for count in (5, 10, 20)
            for row in of_items(samples, masks, count, 0.6, classes, most)
        ]
        yield "Mean IoU of few images", ["images", "classes", *ends], rows
    if "pairs" in parts:
        rows = [
            [count, categories, f"{100 * share:g} %", *row]
            for count, categories in taken(IMAGES)
            for share in taken((0.0, 0.01, 0.025, 0.05))
            for row in of_items(samples, pairs, count, categories, share)
        ]
        yield "All ordered pairs of images", ["images", "categories", "variance of an image", *ends], rows
    if "neighbours" in parts:
        rows = [
            [f"{classes} classes x {per}" + (f" patients x {each}" if each > 1 else ""), *row]
            for per, classes, each in taken(VOTERS)
            for good in taken((0.4, 0.7, 1.0))
            for row in of_items(samples, voters, per, classes, each, good)
        ]
        yield "Leave-one-out 20-NN", ["images", *ends], rows
    if "defects" in parts:
        rows = [
            [good, bad, *row]
            for good, bad in taken(KINDS)
            for auroc in taken((0.7, 0.9, 0.97))
            for row in of_items(samples, defects, good, bad, auroc)
        ]
        yield "Few defects", ["good", "defective", *ends], rows
    if "alignment" in parts:
        rows = [
            [count, batch, *of_alignment(samples, count, batch, alike)]
            for count, batch in taken(((64, 64), (128, 32), (500, 125)))
            for alike in (0.2, 0.5, 0.9)
        ]
        yield "CKA", ["images", "of a batch", "expected", "covered", "half width"], rows
