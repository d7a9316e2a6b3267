"""Multiple comparisons with the best: by how much each candidate may be below the true best, at most."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from layerboard.tasks.metrics.arrays import Features, Floats, Mask
from layerboard.tasks.statistics.draws import (
    BEST_DRAWS,
    BEST_LEVEL,
    largest_difference,
    normal_draws,
    quantile_of,
    uncertainty_of,
    unit_step,
    with_one_more,
    z_scores,
)
from layerboard.tasks.statistics.uncertainty import (
    LEVEL,
    Uncertainty,
    WeightedScores,
    farthest_apart,
    without_rounding,
)
from layerboard.tasks.statistics.weighted import Ratios

ALONE = float(ndtri((1 + LEVEL) / 2))  # least quantile, so that one statement alone is wrong in at most 2.5 %
HOPELESS = 3.0  # rivals more than this many standard errors below a candidate do not widen its quantile
STEPS = 40  # of a fixed point, each of which at least halves the error


class Groups(NamedTuple):
    """The best of one group of candidates minus the best of another, in the unit of the scores."""

    value: float
    low: float  # of the 95 % interval
    high: float
    p: float  # two-sided, of no difference


class WithBest(NamedTuple):
    """Candidates compared with the best of them, [scores] each, in the unit of the scores."""

    loss: Floats  # the true best score is at most so far above the true score, >= 0
    maybe: Mask  # whether it may be the best: it is not shown to be worse


def compare_with_best(measured: WeightedScores, seed: int = 0) -> WithBest | None:
    """By how much each of several scores is below the true best, at most, and which may be the best.

    With 95 % probability all statements hold together: those that may be the best contain one that is truly
    the best, and no score is further below the true best than its ``loss``. So they also hold for a candidate
    that was picked by its score. A single statement is wrong with a probability of at most 2.5 %.

    A candidate may be the best if no rival is above it by more than d standard errors of their paired
    difference, where d is the 96 % quantile of the largest such difference if all were equal (`BEST_LEVEL`).
    Its draws are normal, with the covariance of the scores and the tails of Student's t. The loss is the
    largest upper end of such a difference between one that may be the best and the candidate.

    Where scores are shares of hits, few units that differ say little about how many would: for the first
    question each side counts one more unit that differs, for the second the variance is that of the
    hypothesis at the end of the interval, and never less than the first one, so that nothing has a loss of 0
    while another may be the best. If no unit of n differs, the loss is about d^2 / n. Of other scores one
    more unit counts that moves two candidates apart by as much as any unit of the sample does: with few
    units, the video in which a layer fails may be missing, and the variance then knows nothing of it. What no
    candidate does in any unit of the sample is in no bound. Shares never lose more than all.

    Returns None if there are too few units to estimate a variance.

    Sources: Hsu, Multiple Comparisons, 1996, chapter 4; Edwards and Hsu, Multiple Comparisons With the Best
    Treatment, JASA 78, 1983; Bonett and Price, Adjusted Wald Confidence Interval for a Difference of Binomial
    Proportions Based on Paired Data, JEBS 37, 2012 (the added units); Tango, Equivalence Test and Confidence
    Interval for the Difference in Proportions for the Paired-Sample Design, Statistics in Medicine 17, 1998.
    """
    if (plain := Uncertainty.of(measured)) is None:
        return None
    uncertainty = with_one_more(plain, measured)
    scores = measured.evaluate()[0]
    above = without_rounding(scores - scores[:, None], scores)  # [candidate rival]
    error, freedom = uncertainty.pairs()
    height = z_scores(scores, error, freedom)
    near = height >= -HOPELESS
    normal = normal_draws(uncertainty, np.arange(len(scores)), BEST_DRAWS, seed)
    maybe, inner, outer = _tested(height, error, normal, near)
    best = np.flatnonzero(maybe)
    quantile = np.where(near[best], inner[best, None], np.maximum(inner, outer)[best, None])
    lead, margin = -above[best], stdtrit(freedom[best], ndtr(quantile)) * error[best]
    if isinstance(measured, Ratios) and (step := unit_step(measured)):
        error, freedom = plain.pairs()
        reach, differing = stdtrit(freedom[best], ndtr(quantile)), _differing(measured)[best] / step**2
        # never below the end that says that this one may be the best
        margin = np.maximum(margin, step * _margins(lead / step, error[best] / step, differing, reach))
    else:
        margin += np.ptp(plain.parts[0][0], axis=1).max()
    upper = np.clip(lead + margin, 0, farthest_apart(measured))
    upper[np.arange(len(best)), best] = 0  # no candidate is below itself
    return WithBest(upper.max(axis=0), maybe)


def _tested(height: Floats, error: Floats, normal: Features, near: Mask) -> tuple[Mask, Floats, Floats]:
    """Which candidates may be the best, and the quantiles that decide that: [candidates] each.

    ``height`` [candidate rival] says by how many standard errors a rival is above, ``error`` is its standard
    error, ``normal`` are draws of the scores, and ``near`` [candidate rival] marks rivals that are not
    hopelessly below. The first quantile is over these rivals, the second one over all.
    """
    least, count = height.max(axis=1), len(height)
    maybe, inner, outer = least <= 0, *np.full((2, count), ALONE)
    beyond = -ndtri((1 - LEVEL) / max(2, 10 * count))  # where none may be the best (Bonferroni)
    for each in np.flatnonzero(least <= beyond).tolist():
        inner[each] = _quantile(normal, error[each], each, near[each])
        maybe[each] = least[each] <= inner[each]
        if maybe[each] and not near[each].all():
            outer[each] = _quantile(normal, error[each], each, np.ones_like(near[each]))
    return maybe, inner, outer


def compare_groups(measured: WeightedScores, is_first: Mask, seed: int = 0) -> Groups | None:
    """The true best of the first group of scores minus that of the second; None for too few units.

    ``is_first`` [scores] marks the scores of the first group; all others are of the second. Each end holds
    with 97.5 %. For whichever score is truly the best of its group, the others of the other group are above
    it by no more than the quantile of the largest of these differences allows, so the choice of the best of
    each on the same units is accounted for.

    Source: as `compare_with_best`, with each score as the control of the scores of the other group.
    """
    if (uncertainty := uncertainty_of(measured)) is None:
        return None
    scores = measured.evaluate()[0]
    normal = normal_draws(uncertainty, np.arange(len(scores)), BEST_DRAWS, seed)
    error, freedom = uncertainty.pairs()
    height = z_scores(scores, error, freedom)
    above = without_rounding(scores - scores[:, None], scores)
    ends, tails = [], []
    for group in (is_first, ~is_first):
        rivals = np.flatnonzero(group)
        lowest, largest_p = math.inf, 0.0
        for each in np.flatnonzero(~group).tolist():
            draws = largest_difference(normal, error[each], each, rivals)
            quantile = max(ALONE, quantile_of(draws, (1 + LEVEL) / 2))
            reach = stdtrit(freedom[each, rivals], ndtr(quantile)) * error[each, rivals]
            lowest = min(lowest, float((above[each, rivals] - reach).max()))
            above_it = height[each, rivals].max()
            largest_p = max(largest_p, (1 + int((draws >= above_it).sum())) / (1 + len(draws)))
        ends.append(lowest)
        tails.append(largest_p)
    value = float(scores[is_first].max() - scores[~is_first].max())
    most = farthest_apart(measured)
    return Groups(value, max(ends[0], -most), min(-ends[1], most), min(1.0, 2 * min(tails)))


def _quantile(normal: Features, error: Floats, candidate: int, rivals: Mask) -> float:
    """Quantile of the largest difference of the rivals [scores] from a candidate, in standard errors."""
    draws = largest_difference(normal, error, candidate, np.flatnonzero(rivals))
    return max(ALONE, quantile_of(draws, BEST_LEVEL))


def _differing(measured: Ratios) -> Floats:
    """Sum over the units of the squared differences of two scores: [scores scores]."""
    counts = measured.counts
    weight = np.divide(measured.weights, counts, out=np.zeros(len(counts)), where=counts > 0)
    parts = measured.totals * weight[:, None]
    products = parts.T @ parts
    each = np.diag(products)
    return np.asarray(np.maximum(each[:, None] + each - 2 * products, 0), np.float64)


def _margins(lead: Floats, error: Floats, differing: Floats, reach: Floats) -> Floats:
    """How far the upper end of a difference is above it, in units: [first second].

    The end x solves x - lead = reach * sqrt(variance(x)). The variance is the one that was estimated, plus
    the number of differing units that x makes likelier than they were: of all pairs of rates with the
    difference x, the likeliest is taken (Tango, 1998), in the limit of few.

    Args:
        lead: First score minus second, in units, [first second].
        error: Its standard error.
        differing: Number of units that differ, of which ``lead`` is a balance.
        reach: Number of standard errors.
    """
    total = np.maximum(differing, np.abs(lead))
    fewer = (total - lead) / 2  # units in which the second is better
    margin = (reach**2 + reach * np.sqrt(reach**2 + 4 * error**2)) / 2
    for _ in range(STEPS):
        end = lead + margin
        slack = total - 2 * end
        likeliest = (slack + np.sqrt(np.maximum(slack**2 + 8 * fewer * end, 0))) / 4
        margin = reach * np.sqrt(np.maximum(error**2 + 2 * likeliest + end - total, 0))
    return np.asarray(margin, np.float64)


def holm(p: Floats) -> Floats:
    """Holm-adjusted p-values [tests], which control the family-wise error rate.

    The tests may depend on each other in any way. A NaN counts as no test.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics
    6, 1979.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted
