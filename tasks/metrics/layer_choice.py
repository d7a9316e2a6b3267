"""How well a layer is chosen by something else than its score, for one backbone and over several.

The question, without these numbers: Garrido et al., RankMe, ICML 2023, and Agrawal et al., alpha-ReQ, NeurIPS
2022, who choose among trainings, not among layers.
"""

import math

import numpy as np
from scipy.special import stdtrit
from scipy.stats import spearmanr

from layerboard.tasks.metrics.arrays import Floats, Integers

FEWEST = 3  # layers that a rank correlation is of, and values that an interval is of, at least
MOST_SIGNS = 16  # differences up to which every pattern of signs is tried; of more, `DRAWS` are drawn
DRAWS = 20_000


def named_layers(criterion: Floats) -> Integers:
    """Places where a criterion [layers] is highest, NaN left out: none where it tells no two layers apart."""
    there = criterion[~np.isnan(criterion)]
    if not len(there) or np.ptp(there) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(criterion == there.max())


def regret(scores: Floats, places: Integers) -> float:
    """Best score less that of the layers at some places, at least 0; of several layers their mean counts.

    The mean is what is lost on average by whoever takes any one of them. Scores [layers] are NaN where there
    is none; the places, at least one, have one.
    """
    return float(np.nanmax(scores) - scores[places].mean())


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's, over the layers that have both; NaN of fewer than `FEWEST`, or where one does not vary."""
    both = ~np.isnan(first) & ~np.isnan(second)
    x, y = first[both], second[both]
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(spearmanr(x, y).statistic)


def mean_reach(values: Floats, level: float = 0.95) -> float:
    """Half the width of Student's interval of the mean of values [backbones]; NaN of fewer than `FEWEST`."""
    if len(values) < FEWEST:
        return math.nan
    return float(stdtrit(len(values) - 1, (1 + level) / 2) * values.std(ddof=1) / math.sqrt(len(values)))


def below_zero(differences: Floats, seed: int = 0) -> float:
    """One-sided p-value in (0, 1] that the mean of differences [backbones] is below 0, by turning signs.

    The share of all patterns of signs, or of `DRAWS` drawn ones and the present one, whose mean is as low as
    the present one or lower. It holds where each difference would as likely have the other sign if there were
    none; with n differences it is at least 2^-n. NaN without any.
    """
    count = len(differences)
    if not count:
        return math.nan
    if count <= MOST_SIGNS:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    else:
        bits = np.random.default_rng(seed).integers(0, 2, (DRAWS, count))
        bits[0] = 0  # the present one
    sums = (1 - 2 * bits) @ differences
    rounding = 1e-12 * np.abs(differences).sum()
    return float((sums <= differences.sum() + rounding).mean())
