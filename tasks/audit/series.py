"""Series in a collection: runs of files that are consecutive by name and also nearest neighbours."""

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from layerboard.tasks.metrics.arrays import Integers, Mask
from layerboard.tasks.metrics.neighbours import Neighbours

NEAREST = 3  # two consecutive files are linked if one is among this many nearest neighbours of the other
SHORTEST = 3  # least number of files in a run
FEWEST = 6  # least number of files in a unit in which a series can be detected
CHANCE = 0.001  # probability that some unit without a series is taken for one


def named_alike(keys: Sequence[str], labels: Sequence[str]) -> list[Integers]:
    """Units: files with the same folder, class and name pattern, sorted by the numbers in their names."""
    units = defaultdict[tuple[str, str, str], list[tuple[list[int], int]]](list)
    for file, (key, label) in enumerate(zip(keys, labels, strict=True)):
        folder, _, name = key.rpartition("/")
        numbers = [int(number) for number in re.findall(r"\d+", name)]
        units[folder, label, re.sub(r"\d+", "#", name)].append((numbers, file))
    return [np.array([file for _, file in sorted(unit)], np.int64) for unit in units.values()]


def near_next(found: Neighbours, unit: Integers, following: Integers) -> Mask:
    """Whether each image and the next file of its unit are linked: [images].

    They are linked if one is among the `NEAREST` neighbours of the other within the unit. False for an image
    whose next file (``following``) is itself.
    """
    own = np.arange(len(unit))
    inside = (unit[found.index] == unit[:, None]) & (found.index != own[:, None])
    inside &= inside.cumsum(axis=1) <= NEAREST
    forward = (inside & (found.index == following[:, None])).any(axis=1)
    backward = (inside[following] & (found.index[following] == own[:, None])).any(axis=1)
    return np.asarray((forward | backward) & (following != own), np.bool_)


def runs(units: Sequence[Integers], linked: Sequence[Mask]) -> list[Integers]:
    """Indices of the files of each run of at least `SHORTEST` files, the longest run first.

    ``linked`` says for each unit whether each file and the next one are linked, [files - 1]. Runs are taken
    from the units with more links than a random order would have, by an exact test at level `CHANCE` over all
    units; or from every unit, if only all units together have more.
    """
    tested = [(unit, near) for unit, near in zip(units, linked, strict=True) if len(unit) >= FEWEST]
    if not tested:
        return []
    chances = np.array([1 - (1 - NEAREST / (len(unit) - 1)) ** 2 for unit, _ in tested])
    hits, sizes = (
        np.array(each) for each in zip(*((near.sum(), len(near)) for _, near in tested), strict=True)
    )
    # Bernoulli trials with unequal chances have a smaller tail than as many with the mean chance
    together = binom.sf(hits.sum() - 1, sizes.sum(), (chances * sizes).sum() / sizes.sum()) < CHANCE
    sure = np.asarray(binom.sf(hits - 1, sizes, chances)) < CHANCE / len(tested)
    chosen = (
        tested
        if together and not sure.any()
        else [each for each, good in zip(tested, sure, strict=True) if good]
    )
    parts = []
    for unit, near in chosen:
        breaks = np.flatnonzero(~near) + 1
        parts += [part for part in np.split(unit, breaks) if len(part) >= SHORTEST]
    return sorted(parts, key=lambda run: -len(run))
