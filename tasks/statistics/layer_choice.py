"""Quality of a layer choice that uses a criterion instead of the scores, for one backbone and over several.

Garrido et al., RankMe, ICML 2023, and Agrawal et al., alpha-ReQ, NeurIPS 2022, ask the same question, with
other measures, for the choice among trainings instead of layers.
"""

import math

import numpy as np
from scipy.special import stdtrit

from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.linearised import centred_ranks
from layerboard.tasks.statistics.uncertainty import LEVEL

FEWEST = 3  # least number of layers for a rank correlation, and of values for an interval
MOST_SIGNS = 16  # up to this many differences every sign pattern is tried; beyond, `DRAWS` random ones
DRAWS = 20_000


def named_layers(criterion: Floats) -> Integers:
    """Indices of the maxima of a criterion [layers], ignoring NaN; empty if it is the same for all layers."""
    there = criterion[~np.isnan(criterion)]
    if not len(there) or np.ptp(there) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(criterion == there.max())


def regret(scores: Floats, places: Integers) -> float:
    """Best score minus the mean score of the chosen layers, at least 0.

    The mean is the expected score of a random choice among them. ``scores`` [layers] are NaN for layers
    without one; ``places`` are the indices of the chosen layers, at least one, which all have scores.
    """
    return float(np.nanmax(scores) - scores[places].mean())


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's rho over the layers with both values; NaN for fewer than `FEWEST`, or constant values."""
    both = ~np.isnan(first) & ~np.isnan(second)
    x, y = first[both], second[both]
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    ranks = np.column_stack([centred_ranks(values)[0] for values in (x, y)])
    return float(np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0])


def mean_reach(values: Floats) -> float:
    """Half-width of Student's interval (`LEVEL`) of the mean of values [backbones]; NaN below `FEWEST`."""
    if len(values) < FEWEST:
        return math.nan
    return float(stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / math.sqrt(len(values)))


def below_zero(differences: Floats) -> float:
    """One-sided p-value, in (0, 1], of a sign-flip test that the mean of differences [backbones] is below 0.

    It is the share of sign patterns whose mean is at most the observed one: of all patterns, or of `DRAWS`,
    which are random but for the observed one. Under the null hypothesis each difference must be symmetric
    around 0. With n differences, p is at least 2^-n. NaN without differences.
    """
    count = len(differences)
    if not count:
        return math.nan
    if count <= MOST_SIGNS:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    else:
        bits = np.random.default_rng(0).integers(0, 2, (DRAWS, count))
        bits[0] = 0  # the observed one
    sums = (1 - 2 * bits) @ differences
    rounding = 1e-12 * np.abs(differences).sum()
    return float((sums <= differences.sum() + rounding).mean())
