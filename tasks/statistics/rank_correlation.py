"""Rank correlation of two numbers: over layers as measured, and over backbones without the noise."""

import math
from typing import NamedTuple

import numpy as np

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics.linearised import centred_ranks
from layerboard.tasks.statistics.resolution import CRITICAL

FEWEST = 3  # least number of layers for a rank correlation
FEWEST_SAMPLED = 6  # least number of backbones for an interval
RELIABLE = 0.9  # least share of the variance of scores that is not noise


class Correlation(NamedTuple):
    """A correlation of true scores, -1 to 1, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's rho over the layers with both values; NaN for fewer than `FEWEST`, or constant values."""
    both = ~np.isnan(first) & ~np.isnan(second)
    x, y = first[both], second[both]
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    ranks = np.column_stack([centred_ranks(values)[0] for values in (x, y)])
    return float(np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0])


def true_rank_correlation(first: Floats, second: Floats, noise: Floats) -> Correlation | None:
    """Spearman's rho of true scores over such backbones, from measured ones: two arrays [backbones].

    ``noise`` [2 2] is the part of the variances and the covariance of both over the backbones that comes from
    errors. The interval is that of rho as measured, with the backbones as the sample; it is corrected for
    attenuation by the noise and cut at -1 and 1. A perfect rho of few backbones counts half a step less. By
    simulation (workshop/simulations/agreement.py) it covers in 90 to 100 %, for few, skewed or outlying
    scores, too; with more noise it misses.

    None for fewer than `FEWEST_SAMPLED` backbones, and if less than `RELIABLE` of a variance is not noise.

    Sources: Spearman, The Proof and Measurement of Association between Two Things, American Journal of
    Psychology 15, 1904 (attenuation); Bonett and Wright, Sample Size Requirements for Estimating Pearson,
    Kendall and Spearman Correlations, Psychometrika 65, 2000 (the interval).
    """
    if (count := len(first)) < FEWEST_SAMPLED:
        return None
    spread = np.var([first, second], axis=1, ddof=1)
    if not (np.diag(noise) < (1 - RELIABLE) * spread).all():
        return None
    most = 1 - 6 / (count * (count**2 - 1))
    rho = min(most, max(-most, rank_correlation(first, second)))
    reach = CRITICAL * math.sqrt((1 + rho**2 / 2) / (count - 3))
    measured = np.tanh(math.atanh(rho) + np.array([0, -reach, reach]))
    size = math.sqrt(np.prod(spread - np.diag(noise)))
    true = (measured * math.sqrt(np.prod(spread)) - noise[0, 1]) / size
    return Correlation(*np.clip(true, -1, 1).tolist())
