"""How often the interval of a held-out gain holds the gain of the candidates that halves of the data choose.

    python -m workshop.simulations.held_out              minutes on one core
    python -m workshop.simulations.held_out --quick      the same from few samples, seconds

Hits of candidates on the same images, correlated by 0.5, 0.9 or 0.97. The truth of a sample is the mean, over
the splits, of the true difference of the two candidates that were chosen.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from layerboard.tasks.framework.assess import CROSSED, HeldOutGain, held_out_gain, pick_highest
from layerboard.tasks.framework.base import Items, Statistic
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics.weighted import halves

# shares of hits of those that are chosen among, and of those that they are compared with
CASES: Mapping[str, tuple[Sequence[float], Sequence[float]]] = {
    "20 and 12, all equal": ([0.6] * 20, [0.6] * 12),
    "20 and 12, evenly apart": (np.linspace(0.5, 0.7, 20).tolist(), np.linspace(0.45, 0.65, 12).tolist()),
    "one fixed and 12 equal": ([0.65], [0.6] * 12),
    "one of 3 better than 3": ([0.7, 0.5, 0.5], [0.6] * 3),
}
IMAGES, CORRELATIONS = (40, 150, 600), (0.5, 0.9, 0.97)


def correlated_hits(
    random: np.random.Generator, images: int, shares: Sequence[float], correlation: float
) -> Floats:
    """Hits in percent, [images candidates]."""
    easy, own = random.normal(size=(images, 1)), random.normal(size=(images, len(shares)))
    height = np.sqrt(correlation) * easy + np.sqrt(1 - correlation) * own
    return np.where(height < ndtri(np.asarray(shares)), 100.0, 0.0)


def gain_and_truth(hits: Floats, shares: Sequence[float], first: int) -> tuple[HeldOutGain, float]:
    """The gain of the first candidates over the others, and the true one of what is chosen."""
    keys = tuple(f"{row:04d}" for row in range(len(hits)))
    statistics = {"top-1": Statistic("hit")}
    every = [Items("images", keys, keys, ("",) * len(keys), {"hit": hit}, statistics) for hit in hits.T]
    gain = held_out_gain(every[:first], every[first:], "top-1")
    assert gain is not None
    true, chosen = 100 * np.asarray(shares), []
    for half in halves(np.zeros(len(keys), np.int64), CROSSED, 0):
        for part in (half, ~half):
            scores = hits[part].mean(axis=0)
            best, other = pick_highest(scores[:first]), first + pick_highest(scores[first:])
            chosen.append(true[best] - true[other])
    return gain, float(np.mean(chosen))


def gain_table(samples: int) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield "| candidates | correlation | " + " | ".join(f"{images} images" for images in IMAGES) + " |"
    yield "|---" * (2 + len(IMAGES)) + "|"
    for name, (first, others) in CASES.items():
        for correlation in CORRELATIONS:
            cells = []
            for images in IMAGES:
                random, held = np.random.default_rng(images), 0
                for _ in range(samples):
                    hits = correlated_hits(random, images, [*first, *others], correlation)
                    gain, truth = gain_and_truth(hits, [*first, *others], len(first))
                    held += gain.low <= truth <= gain.high
                cells.append(f"{100 * held / samples:.1f}")
            yield f"| {name} | {correlation} | {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    for line in gain_table(5 if parser.parse_args().quick else 300):
        print(line, flush=True)
