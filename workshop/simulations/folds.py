"""How often intervals of scores of probes that are fitted in folds hold the expected score of new data.

A part of `workshop.simulations.uncertainty`. Every sample draws images with replacement from scikit-learn's
handwritten digits, with noise of their own, and runs the tasks `regress` and `multilabel` on the features of
four layers: a random network, its next block, and another random network that sees each image through noise,
twice. These last two are equally good. What is expected is the mean score of all samples of a cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers
from layerboard.tasks.framework.assess import intervals_of, paired_differences, score_of
from layerboard.tasks.framework.base import Items
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.metrics.folds import group_numbers, stratified_folds
from layerboard.tasks.targets.task import MultilabelTask, RegressTask, TargetTask

WIDTH = 128  # of the layers
OF_EACH = 4  # images of a group
SHOWN = ("R2", "rho", "MAE", "macro AP", "macro AUROC", "macro AP k-NN", "macro AUROC k-NN")


@dataclass(frozen=True, slots=True)
class FittedCell:
    """What is predicted, of how many images."""

    what: str
    count: int


CELLS = (
    *(FittedCell(what, count) for what in ("a number", "prices") for count in (20, 50, 200)),
    *(FittedCell("a number, groups of four", count) for count in (80, 400)),
    *(FittedCell("2 labels", count) for count in (50, 200)),
    *(FittedCell("7 labels", count) for count in (50, 200)),
    FittedCell("10 classes", 200),
    *(FittedCell("2 rare labels", count) for count in (200, 400)),
)
PIXELS, DIGITS = load_digits(return_X_y=True)
PIXELS = PIXELS / 16
_BASIS = np.linalg.svd(PIXELS - PIXELS.mean(0), full_matrices=False)[2]
_PARTS = (PIXELS - PIXELS.mean(0)) @ _BASIS.T[:, :4]
_PARTS = _PARTS / _PARTS.std(0)
LATENT = _PARTS @ np.array([0.7, 0.5, 0.4, 0.3]) + 0.4 * _PARTS[:, 0] * _PARTS[:, 1]
LATENT = (LATENT - LATENT.mean()) / LATENT.std()  # a number that is not linear in the pixels


def _labels(rows: Integers, what: str) -> Floats:
    """Labels of images of these digits: [images labels]."""
    digit, latent = DIGITS[rows], LATENT[rows]
    every: dict[str, list[tuple[int, ...]]] = {
        "2 labels": [(0, 2, 4, 6, 8), (2, 3, 5, 7)],
        "7 labels": [
            (0, 2, 4, 6, 8),
            (2, 3, 5, 7),
            (5, 6, 7, 8, 9),
            (0, 6, 8, 9),
            (1, 4, 7),
            (0, 3, 6, 9),
            (3, 8),
        ],
        "10 classes": [(number,) for number in range(10)],
        "2 rare labels": [(3,), (8,)],
    }
    labels = np.stack([np.isin(digit, members) for members in every[what]], axis=1)
    if "rare" in what:  # 4 % of the images each
        labels &= (latent > np.quantile(LATENT, 0.6))[:, None]
    return labels.astype(np.float64)


def layers(random: np.random.Generator, pixels: Floats) -> list[Floats]:
    """Features [images WIDTH] of four layers."""
    fixed = np.random.default_rng(0)
    first, other, second = (
        fixed.normal(size=shape) / scale
        for shape, scale in (((64, WIDTH), 2), ((64, WIDTH), 2), ((WIDTH, WIDTH), WIDTH**0.5))
    )
    shift = fixed.normal(size=WIDTH)

    def bent(values: Floats) -> Floats:
        return np.asarray(values / (1 + np.exp(-1.7 * values)))

    block = bent(pixels @ first + shift)
    seen = [pixels + 0.25 * random.normal(size=pixels.shape) for _ in range(2)]
    return [block, bent(block @ second) + 0.3 * block, *(bent(each @ other - shift) for each in seen)]


def sample(random: np.random.Generator, cell: FittedCell) -> list[Items]:
    """Items of the four layers, for new images."""
    grouped = "groups" in cell.what
    while True:
        group = np.arange(cell.count) // (OF_EACH if grouped else 1)
        rows = random.choice(len(PIXELS), group.max() + 1)[group]
        pixels = PIXELS[rows] + 0.1 * random.normal(size=(cell.count, PIXELS.shape[1]))
        samples = tuple(FileSample(f"{number}.png", "") for number in range(cell.count))
        groups = tuple(map(str, group))
        fold = stratified_folds(np.zeros(cell.count, np.int64), group_numbers(groups))
        if "label" in cell.what or "class" in cell.what:
            values = _labels(rows, cell.what)
            values = abs(values - (random.random(values.shape) < 0.03) * ("rare" not in cell.what))
            names = tuple(f"l{number}" for number in range(values.shape[1]))
            data = ImageLabels("digits", samples, values, names, fold, groups, Coverage(()))
            if not data.judged.all():
                continue
            task: TargetTask = MultilabelTask(data, MultilabelTask.configs["standard"])
        else:
            number = LATENT[rows] + 0.4 * random.normal(size=group.max() + 1)[group]
            values = np.exp(number) if cell.what == "prices" else number
            numbers = ImageNumbers("digits", samples, values[:, None], ("x",), fold, groups, Coverage(()))
            task = RegressTask(numbers, RegressTask.configs["standard"])
        (source,) = task.vector_sources
        outcomes = [task.score({source.name: each.astype(np.float32)}) for each in layers(random, pixels)]
        items = [outcome.items for outcome in outcomes if outcome.items is not None]
        if len(items) == len(outcomes) and all(
            {*each.statistics} == {*items[0].statistics} for each in items
        ):
            return items


def of_cell(samples: int, cell: FittedCell) -> Iterator[list[object]]:
    """For each metric: its mean, how often intervals hold it, those of differences, and equal layers differ.

    Of the layers, and of their pairs, that which is held least often counts.
    """
    scores: dict[str, list[list[float]]] = {}
    held: dict[str, list[list[tuple[float, float]]]] = {}
    apart: dict[str, list[list[tuple[float, float]]]] = {}
    equal: dict[str, list[bool]] = {}
    for seed in range(samples):
        items = sample(np.random.default_rng((seed, cell.count)), cell)
        ends = intervals_of(items)
        for metric in [name for name in SHOWN if name in items[0].statistics]:
            scores.setdefault(metric, []).append([score_of(each, metric) for each in items])
            held.setdefault(metric, []).append(ends[metric])
            pairs = [paired_differences(items[first:], metric) for first in range(len(items) - 1)]
            apart.setdefault(metric, []).append(
                [
                    (low, high)
                    for pair in pairs
                    if pair
                    for low, high in zip(pair.low[1:], pair.high[1:], strict=True)
                ]
            )
            equal.setdefault(metric, []).append(pairs[-1] is not None and bool(pairs[-1].p[1] < 0.05))
    first, second = np.triu_indices(4, 1)
    for metric in scores:
        score = np.array(scores[metric])
        if np.isnan(held[metric]).any():  # too few images
            continue
        covered = [
            ((ends[..., 0] <= values.mean(0)) & (values.mean(0) <= ends[..., 1])).mean(0)
            for values, ends in (
                (score, np.array(held[metric])),
                (score[:, second] - score[:, first], np.array(apart[metric])),
            )
        ]
        half = np.array(held[metric])[..., 1].mean() - np.array(held[metric])[..., 0].mean()
        need = np.mean(np.quantile(score, 0.975, axis=0) - np.quantile(score, 0.025, axis=0))
        yield [
            cell.what,
            cell.count,
            metric,
            f"{score.mean():.1f}",
            *(float(each.min()) for each in covered),
            float(np.mean(equal[metric])),
            f"{half / need:.2f}",
        ]


HEAD = ("what", "images", "metric", "mean", "held", "differences held", "equal layers differ", "width")
