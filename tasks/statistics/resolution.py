"""What a sample can resolve: the smallest difference that it shows, and how many units would show another.

A difference is shown if it exceeds its critical value, in standard errors. It does so in `POWER` of the
samples if it is larger by the `POWER` quantile of the normal distribution: an interval that just excludes 0
would exclude it in half of the samples only.

Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from layerboard.tasks.statistics.draws import (
    DRAWS,
    largest_difference,
    normal_draws,
    quantile_of,
    uncertainty_of,
)
from layerboard.tasks.statistics.uncertainty import LEVEL, WeightedScores

POWER = 0.8  # share of the samples in which a difference is shown
CRITICAL = float(ndtri((1 + LEVEL) / 2))  # standard errors that one difference must exceed, 1.96
BEYOND = float(ndtri(POWER))  # standard errors by which the true difference must exceed that, 0.84
NEAREST = 16  # most scores whose difference from the best is looked at


class Enough(NamedTuple):
    """Number of units at which a difference is shown in `POWER` of the samples; infinite for none."""

    units: float  # if the true difference is the measured one
    least: float  # if it is at the upper end of its interval
    most: float  # if it is at the lower end


def enough_units(difference: float, error: float, units: float) -> Enough:
    """About how many units show a difference that was measured on ``units``, with this standard error.

    The numbers vary much, since the true difference is hardly known if it is not shown; the range is that of
    its interval. Standard errors shrink with the square root of the number of units.
    """
    shown, reach = (CRITICAL + BEYOND) * error, CRITICAL * error
    true = (difference, difference + reach, difference - reach)
    return Enough(*(units * (shown / each) ** 2 if each > 0 else math.inf for each in true))


def smallest_difference(measured: WeightedScores, seed: int = 0, draws: int = DRAWS) -> float:
    """The difference from the best that is shown in about `POWER` of the samples, in the scores' unit.

    It is the median over the scores that are no further below the best, at most the `NEAREST`; if there are
    none, that of the nearest one: the errors of pairs that are far apart are larger. Each is compared with
    all others at once: the critical value is the quantile of the largest difference of simulated scores from
    its own (Dunnett's, as in Hsu, Multiple Comparisons, 1996, chapter 4). NaN for fewer than two scores, and
    for too few units.
    """
    if measured.scores < 2 or (uncertainty := uncertainty_of(measured)) is None:
        return math.nan
    scores = measured.evaluate()[0]
    error, freedom = uncertainty.pairs()
    normal = normal_draws(uncertainty, np.arange(len(scores)), draws, seed)
    best = int(np.argmax(scores))
    near = np.argsort(-scores, kind="stable")
    near = near[(near != best) & (error[near, best] > 0)][:NEAREST]
    shown = []
    for rival in near.tolist():
        gaps = largest_difference(normal, error[rival], rival, np.arange(len(scores)))
        critical = stdtrit(freedom[rival, best], ndtr(quantile_of(gaps)))
        shown.append((critical + BEYOND) * error[rival, best])
    below = np.flatnonzero(scores[best] - scores[near] <= shown)
    return float(np.median(np.array(shown)[below if len(below) else [0]])) if shown else math.nan
