"""Simulations of ranks and of what a sample resolves: a part of `workshop.simulations.uncertainty`.

Real answers are those of k-NN on the handwritten digits that scikit-learn brings: five layers see the pixels
with more and more noise, a sixth is the copy of one of them, so they are exactly equal, and the last adds
errors to another and mends none. The 900 test images are the population, from which images are drawn with
replacement.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics.draws import (
    largest_difference,
    normal_draws,
    quantile_of,
    uncertainty_of,
    z_scores,
)
from layerboard.tasks.statistics.ranks import rank_ranges
from layerboard.tasks.statistics.resolution import enough_units, smallest_difference
from layerboard.tasks.statistics.uncertainty import differences
from layerboard.tasks.statistics.weighted import Ratios
from workshop.simulations.best import hits_of

NOISES = (0.2, 0.3, 0.35, 0.4, 0.8)  # of the pixels, 0 to 1, that the layers see
BANK = 897  # images that vote; the others are the population
DRAWS = 1_000
TRUE = {  # shares of hits of the layers; those of one backbone in brackets
    "7 equal": ((0.7,),) * 7,
    "7 equal, near 100 %": ((0.97,),) * 7,
    "pairs of equals": ((0.8,), (0.8,), (0.7,), (0.7,), (0.6,), (0.6,)),
    "steps of 3 points": tuple((0.85 - 0.03 * step,) for step in range(7)),
    "4 equal backbones of 6 layers": ((0.7,) * 6,) * 4,
    "4 backbones, 5 points apart, of 6 falling layers": tuple(
        tuple(0.8 - 0.05 * number - 0.02 * layer for layer in range(6)) for number in range(4)
    ),
}
DIGITS = "k-NN on digits, an exact copy and a layer that only adds errors"


class Hits(Protocol):
    """Draws so many items of layers with these shares of hits."""

    def __call__(self, random: np.random.Generator, count: int, shares: Sequence[float]) -> Ratios: ...


@cache
def population() -> Floats:
    """Whether k-NN is right about each of 900 digits, by seven layers: [images layers], 0 or 1."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    pixels, labels = pixels[order] / 16, labels[order]
    right = []
    for noise in NOISES:
        seen = pixels + noise * np.random.default_rng(int(100 * noise)).normal(size=pixels.shape)
        apart = cdist(seen[BANK:], seen[:BANK], "sqeuclidean")
        nearest = np.argsort(apart, axis=1)[:, :5]
        votes = (labels[:BANK][nearest][:, :, None] == np.arange(10)).sum(axis=1)
        right.append(votes.argmax(axis=1) == labels[BANK:])
    nested = right[1] & (np.arange(len(right[1])) % 25 > 0)
    return np.stack([*right, right[2], nested], axis=1).astype(np.float64)


def drawn_hits(random: np.random.Generator, count: int) -> Ratios:
    """Hits of so many images of the population."""
    answers = population()
    return hits_of(answers[random.integers(len(answers), size=count)])


def of_ranges(
    samples: int, draw: Callable[[np.random.Generator], Ratios], truth: Floats, owner: Sequence[int]
) -> list[float]:
    """Share of the samples in which all ranks are in their ranges, and of the pairs whose order is shown.

    Candidates that are exactly equal have the order of their numbers.
    """
    best = np.array([truth[np.asarray(owner) == each].max() for each in range(max(owner) + 1)])
    better, rank = (best[:, None] < best).sum(axis=1), np.argsort(np.argsort(-best, kind="stable")) + 1
    held, shown = 0, 0.0
    for seed in range(samples):
        ranges = rank_ranges(draw(np.random.default_rng((seed, len(owner)))), owner, None, seed, DRAWS)
        assert ranges is not None
        first, last = ranges.T
        held += bool(((first <= rank) & (last >= rank)).all())
        shown += float((first - 1).sum() / max(1, better.sum()))
    return [held / samples, shown / samples]


def of_resolution(samples: int, draw: Callable[[np.random.Generator], Ratios]) -> float:
    """Share of the samples in which the last layer is shown to be below another one."""
    shown = 0
    for seed in range(samples):
        measured = draw(np.random.default_rng((seed, 1)))
        uncertainty = uncertainty_of(measured)
        assert uncertainty is not None
        error, freedom = uncertainty.pairs()
        normal = normal_draws(uncertainty, np.arange(len(error)), DRAWS, seed)
        last = len(error) - 1
        reach = largest_difference(normal, error[last], last, np.arange(last))
        height = z_scores(measured.evaluate()[0], error, freedom)[-1, :-1]
        shown += bool(height.max() > quantile_of(reach))
    return shown / samples


def of_enough(samples: int, hits: Hits, count: int, points: float) -> list[float]:
    """Share of the ranges that hold the number of images at which the difference is shown in 80 %.

    Also the middle of the estimates of that number, over the true one.
    """
    shares = [0.7, 0.7 - points / 100]
    large = differences(hits(np.random.default_rng(0), 200_000, shares), 1)
    error = float(large.high[0] - large.low[0]) / 2 / 1.96 * np.sqrt(200_000 / count)
    true, held, ratios = enough_units(points / 100, error, count).units, 0, []
    for seed in range(samples):
        paired = differences(hits(np.random.default_rng((seed, count)), count, shares), 1)
        half = float(paired.high[0] - paired.low[0]) / 2
        enough = enough_units(float(paired.value[0]), half / 1.96, count)
        held += enough.least <= true <= enough.most
        ratios.append(enough.units / true)
    return [held / samples, float(np.median(ratios))]


def rank_tables(
    samples: int, counts: Sequence[int], hits: Hits
) -> Iterator[tuple[str, list[object], list[list[object]]]]:
    """A title, heads and rows of each table."""
    rows: list[list[object]] = []
    for count in counts:
        for name, layers in TRUE.items():
            owner = [number for number, each in enumerate(layers) for _ in each]
            flat = [share for each in layers for share in each]
            draw = partial(hits, count=count, shares=flat)
            cell = of_ranges(samples, draw, np.array(flat), owner)
            rows.append([name, count, cell[0], cell[1] if max(flat) > min(flat) else ""])
        truth = population().mean(axis=0)
        cell = of_ranges(samples, partial(drawn_hits, count=count), truth, range(len(truth)))
        rows.append([DIGITS, count, *cell])
    yield (
        f"Ranges of ranks ({samples:,} samples a cell):",
        ["layers", "n", "all covered", "orders shown"],
        rows,
    )
    rows = []
    for count in counts:
        for width in (2, 12):
            equal = [hits(np.random.default_rng(seed), count, [0.7] * width) for seed in range(5)]
            smallest = float(np.mean([smallest_difference(each) for each in equal]))
            shares = [0.7] + [0.7 - smallest] * (width - 1)
            shown = of_resolution(samples, partial(hits, count=count, shares=shares))
            rows.append([width, count, f"{100 * smallest:.1f}", shown])
    heads: list[object] = ["layers", "n", "smallest difference, points", "shown"]
    yield f"A layer that is worse by the smallest difference ({samples:,} samples a cell):", heads, rows
    rows = []
    for count in counts:
        for points in (2.0, 5.0):
            held, ratio = of_enough(samples, hits, count, points)
            rows.append([f"{points:g}", count, held, f"{ratio:.1f}"])
    heads = ["points", "n", "ranges that hold the true number", "median of the estimates over it"]
    yield f"About how many images show a difference ({samples:,} samples a cell):", heads, rows
