"""Intervals of shares of hits, which hold near 0 and 100 %, too."""

import numpy as np
from scipy.special import betaincinv, stdtrit

from tasks.metrics.arrays import Floats
from tasks.metrics.draws import members_of
from tasks.metrics.influence import influence, sample
from tasks.metrics.resampling import Ratios, Trials

PRIOR = 1.0
"""How many units count for the trials of a unit being all alike, beside those that show whether they are."""


def hit_intervals(measured: Ratios, level: float = 0.95) -> tuple[Floats, Floats]:
    """Ends of intervals of shares of hits: [scores] each, 0 to the value of a hit; NaN where units are few.

    The interval is the exact one of Clopper and Pearson, with the number of independent trials that would
    give the share the variance it has among units: that of the trials themselves where every unit is one
    trial. The variance is found by linearisation; it is drawn towards that of units all hit or all missed, by
    `PRIOR` units, since a few misses say little about it. Freedom is that of the units less the strata.

    Args:
        measured: Scores, all of hits and with their trials.
        level: Nominal coverage, in (0, 1).

    Raises:
        ValueError: A score is not of hits, or the level is outside (0, 1).

    Source: Korn and Graubard, Confidence Intervals for Proportions With Small Expected Number of Positive
    Counts Estimated From Survey Data, Survey Methodology 24, 1998.
    """
    trials = measured.trials
    if trials is None or not np.isfinite(trials.hit).all() or not 0 < level < 1:
        raise ValueError(f"expected scores of hits and a level between 0 and 1, found {level}")
    units, strata = sample(measured)
    if units <= strata:
        return (np.full(measured.scores, np.nan),) * 2
    share = np.clip(measured.evaluate()[0] / trials.hit, 0, 1)
    tail = (1 - level) / 2
    count = _independent(measured, trials, share)
    items = trials.count.sum()
    count = count * (stdtrit(items - 1, tail) / stdtrit(units - strata, tail)) ** 2
    hits = count * share
    low, high = betaincinv(hits, count - hits + 1, tail), betaincinv(hits + 1, count - hits, 1 - tail)
    low, high = np.where(share == 0, 0, low), np.where(share == 1, 1, high)
    return trials.hit * low, trials.hit * high


def _independent(measured: Ratios, trials: Trials, share: Floats) -> Floats:
    """How many independent trials would vary as much: [scores]."""
    alone, together = _least(measured, trials)
    items = trials.count.sum()
    variance = (influence(measured) ** 2).sum(axis=0) / trials.hit**2
    mixed = share * (1 - share) / (items - 1) * items
    inverse = np.divide(variance, mixed, out=np.full_like(share, together), where=mixed > 0)
    informed = _informative(measured, trials, share)
    inverse = (informed * inverse + PRIOR * together) / (informed + PRIOR)
    return np.asarray(1 / np.maximum(inverse, alone), np.float64)


def _least(measured: Ratios, trials: Trials) -> tuple[float, float]:
    """Sums of the squared weights of trials, and of units: what a variance is of share x (1 - share)."""
    weight = np.zeros(len(measured.counts))
    groups = [members for members in members_of(measured.group) if measured.counts[members].sum() > 0]
    for members in groups:
        weight[members] = measured.counts[members] / (measured.counts[members].sum() * len(groups))
    each = np.divide(weight**2, trials.count, out=np.zeros_like(weight), where=trials.count > 0)
    return float(each.sum()), float((weight**2).sum())


def _informative(measured: Ratios, trials: Trials, share: Floats) -> Floats:
    """How many units hold the rarer of hit and miss: [scores]."""
    counting = measured.counts > 0
    part = measured.totals[counting] / measured.counts[counting, None] / trials.hit
    hitting, missing = (part > 0).sum(axis=0), (part < 1).sum(axis=0)
    return np.asarray(np.where(share < 0.5, hitting, missing), np.float64)
