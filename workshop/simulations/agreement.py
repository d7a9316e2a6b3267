"""How often the interval of the rank correlation of two tasks over backbones holds the true one.

    python -m workshop.simulations.agreement              a few minutes on one core
    python -m workshop.simulations.agreement --quick      the same from few samples, half a minute

Each sample draws networks with true curves over depth in two tasks, and images with replacement: the errors
of the scores are those of k-NN on the mini suite's test images in the layers of its backbones, beyond seven
networks those of two of them on random halves of the images. A network's score is that of its highest layer.
The truth is the rank correlation of the highest true scores of 20,000 networks.
"""

import argparse
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics.rank_correlation import rank_correlation, true_rank_correlation
from workshop.simulations.best import DEPTH, SEVEN, mini_answers

AT = np.arange(DEPTH)
# curves: their common shape, the deviation of a network's level and of its curve, and the length of its bends
CURVES: dict[str, tuple[Floats, float, float, float]] = {
    "steep": (40 * AT / (DEPTH - 1), 5.0, 3.0, 3.0),
    "flat": (np.zeros(DEPTH), 5.0, 1.5, 2.5),
    "smooth": (-10 * ((AT - 7) / 7) ** 2, 5.0, 4.0, 5.0),
}
LEVELS = ("normal", "skewed", "some far below")
CORRELATIONS, NETWORKS, IMAGES = (0.0, 0.3, 0.6, 0.9), (6, 8, 12, 20), (576, 60)


def true_curves(random: np.random.Generator, count: int, curve: str, level: str, rho: float) -> Floats:
    """True scores of networks in two tasks, [2 networks DEPTH], whose levels and curves correlate by rho."""
    shape, spread, bend, length = CURVES[curve]
    root = np.linalg.cholesky(np.exp(-((AT[:, None] - AT) ** 2) / length**2 / 2) + 1e-9 * np.eye(DEPTH))
    drawn = random.normal(size=(2, count, DEPTH + 1))
    drawn[1] = rho * drawn[0] + np.sqrt(1 - rho**2) * drawn[1]
    levels = drawn[..., :1]
    if level == "skewed":
        levels = -np.exp(0.6 * levels)
    if level == "some far below":
        levels = levels - 4 * (random.random((count, 1)) < 0.15)
    return np.asarray(shape + spread * levels + bend * drawn[..., 1:] @ root.T)


def network_answers(count: int, seed: int) -> Floats:
    """Hits in percent of networks on each image: [images networks DEPTH]."""
    random, right = np.random.default_rng(seed), 100.0 * mini_answers(*SEVEN).reshape(-1, len(SEVEN), DEPTH)
    networks = [right[:, each] for each in random.permutation(len(SEVEN))[:count]]
    while len(networks) < count:
        first, second = random.choice(len(SEVEN), 2, replace=False)
        networks.append(np.where(random.random((len(right), 1)) < 0.5, right[:, first], right[:, second]))
    return np.stack(networks, axis=1)


class AgreementCell(NamedTuple):
    """What is simulated."""

    level: str  # how the levels of networks are distributed, of `LEVELS`
    curve: str  # of `CURVES`
    images: int
    networks: int
    same: bool  # whether both tasks have the same images, so that their errors vary together


def covered(samples: int, cell: AgreementCell, rho: float) -> Floats:
    """Share of samples with an interval, that of intervals that hold the truth, and half their mean width."""
    level, curve, images, count, same = cell
    highest = true_curves(np.random.default_rng(1), 20_000, curve, level, rho).max(axis=2)
    truth = rank_correlation(*highest)
    answers = [network_answers(count, seed) for seed in (1, 1 if same else 2)]
    ends = []
    for seed in range(samples):
        random = np.random.default_rng((seed, count, images))
        rows = [random.integers(len(answers[0]), size=images) for _ in range(2)]
        scores, errors = [], []
        for task, curves in enumerate(true_curves(random, count, curve, level, rho)):
            drawn = answers[task][rows[0 if same else task]]
            measured = curves + drawn.mean(axis=0) - answers[task].mean(axis=0)
            at_best = drawn[:, np.arange(count), measured.argmax(axis=1)]
            at_best = at_best - at_best.mean(axis=0)
            scores.append(measured.max(axis=1))
            errors.append(at_best - at_best.mean(axis=1, keepdims=True))
        noise = np.einsum("aij,bij->ab", *[np.stack(errors)] * 2) / (images * (images - 1) * (count - 1))
        if correlation := true_rank_correlation(scores[0], scores[1], noise if same else noise * np.eye(2)):
            ends.append(
                (correlation.low <= truth <= correlation.high, (correlation.high - correlation.low) / 2)
            )
    shares = np.mean(ends, axis=0) if ends else (np.nan, np.nan)
    return np.array([len(ends) / samples, *shares])


def agreement_rows(samples: int, *, quick: bool) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield "| networks' levels | curves | images | networks | covered, rho 0, 0.3, 0.6, 0.9 | half width |"
    yield "|---" * 6 + "|"
    counts = NETWORKS[:: 3 if quick else 1]
    for cell in map(AgreementCell._make, product(LEVELS, CURVES, IMAGES, counts, (False, True))):
        cells = np.array([covered(samples, cell, rho) for rho in CORRELATIONS])
        text = ", ".join(f"{100 * share:.1f}" for share in cells[:, 1])
        which = f"{cell.images}, the same" if cell.same else f"{cell.images}"
        half = f"{np.nanmean(cells[:, 2]):.2f}"
        yield f"| {cell.level} | {cell.curve} | {which} | {cell.networks} | {text} | {half} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    is_quick = parser.parse_args().quick
    for line in agreement_rows(20 if is_quick else 400, quick=is_quick):
        print(line, flush=True)
