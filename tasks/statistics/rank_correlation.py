"""Rank correlation of two numbers over layers."""

import math

import numpy as np

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics.linearised import centred_ranks

FEWEST = 3  # least number of layers for a rank correlation


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's rho over the layers with both values; NaN for fewer than `FEWEST`, or constant values."""
    both = ~np.isnan(first) & ~np.isnan(second)
    x, y = first[both], second[both]
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    ranks = np.column_stack([centred_ranks(values)[0] for values in (x, y)])
    return float(np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0])
