"""Random draws of units: bootstrap weights and halves, by seed and strata only; and generators by name."""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tasks.metrics.arrays import Floats, Integers

WEIGHTS = 2_000_000  # numbers in one block of weights, 16 MB
BLOCK = 130_000  # units drawn at once, 1 MB, so that counting them stays in the cache


def generator_of(*facts: object) -> np.random.Generator:
    """A generator whose numbers follow from some facts alone, such as an image's name and a seed."""
    state = blake2b(repr(facts).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(state, "little")))


def draws(stratum: Integers, resamples: int, seed: int) -> Iterator[tuple[int, Floats]]:
    """Blocks of bootstrap weights, each with the number of its first resample.

    Units are drawn with replacement within their stratum, as many as it has. A block [R units] float64 is
    valid until the next one is asked for.
    """
    generator = np.random.default_rng(seed)
    strata, units = members_of(stratum), len(stratum)
    buffer = np.empty((min(resamples, max(1, WEIGHTS // max(1, units))), units))
    for start in range(0, resamples, len(buffer)):
        weights = buffer[: resamples - start]
        for members in strata:
            _draw(generator, members, weights)
        yield start, weights


def halves(stratum: Integers, splits: int, seed: int) -> NDArray[np.bool_]:
    """Random halves, True for the first: [splits units]. Each stratum is halved.

    An odd one out falls to either side at random, and so does the only unit of a stratum.
    """
    generator = np.random.default_rng(seed)
    first = np.zeros((splits, len(stratum)), dtype=bool)
    for members in members_of(stratum):
        size = len(members)
        taken = size // 2 + generator.integers(2, size=(splits, 1)) * (size % 2)
        first[:, members] = generator.permuted(np.arange(size) < taken, axis=1)
    return first


def _draw(generator: np.random.Generator, members: Integers, weights: Floats) -> None:
    """Write bootstrap weights of the units of one stratum into weights [R units]."""
    size = len(members)
    step = max(1, BLOCK // size)
    places = span(members)
    for start in range(0, len(weights), step):
        rows = min(step, len(weights) - start)
        drawn = generator.integers(size, size=(rows, size))
        drawn += size * np.arange(rows)[:, None]
        weights[start : start + rows, places] = np.bincount(drawn.reshape(-1), minlength=rows * size).reshape(
            rows, size
        )


def multinomial(stratum: Integers, units: Integers, resamples: int, seed: int) -> Floats:
    """Bootstrap weights of rows that stand for so many units each: [R rows]."""
    generator = np.random.default_rng(seed)
    weights = np.empty((resamples, len(stratum)))
    for members in members_of(stratum):
        size = int(units[members].sum())
        weights[:, members] = generator.multinomial(size, units[members] / size, size=resamples)
    return weights


def members_of(names: Integers) -> list[Integers]:
    """Places of each name, by name."""
    order = np.argsort(names, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(names[order])) + 1) if len(order) else []


def span(members: Integers) -> Integers | slice:
    """The same places as a slice where they follow each other: a matrix is then not copied to reach them."""
    first, last = int(members[0]), int(members[-1])
    return slice(first, last + 1) if last - first == len(members) - 1 else members
