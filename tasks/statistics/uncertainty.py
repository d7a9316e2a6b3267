"""Uncertainty of scores: confidence intervals, paired differences, and held-out scores of a chosen layer.

The influence of each unit on a score gives standard errors and covariances without resampling. Intervals of
hit rates are exact (Clopper and Pearson), which also hold near 0 and 100 %; others are Student's.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtr, stdtrit

from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.weighted import (
    ClassRatios,
    Part,
    Partitions,
    Ratios,
    Trials,
    group_members,
    halves,
)

# several scores (layers) as functions of the same weighted units
WeightedScores = Ratios | Partitions | ClassRatios

LEVEL = 0.95  # confidence of all intervals
DIGITS = 12  # significant digits of a score that are free of rounding errors
ALIKE = 1e-10  # variances of differences below this share of the two scores' variances are rounding errors
FEWER = 1  # degree of freedom lost if units have several items: found by simulation with about ten units
PRIOR = 1.0  # weight, in units, of the prior assumption that all trials of a unit have the same outcome


def sums_of_units(measured: WeightedScores, values: Floats) -> Floats:
    """Values [units ...] summed over what was sampled, if it counts: [sampled ...].

    These are the units, or the images of pairs (`Ratios.sampling`).
    """
    if isinstance(measured, Ratios) and measured.sampling is not None:
        return np.asarray(measured.sampling @ values, np.float64)
    return np.asarray(values[measured.counts > 0], np.float64)


def sampled_strata(measured: WeightedScores) -> Integers:
    """Stratum of each unit, or image of pairs, that was sampled and counts: [sampled]."""
    if isinstance(measured, Ratios) and measured.sampling is not None:
        joined = measured.sampling
        return np.asarray(measured.stratum[joined.indices[joined.indptr[:-1]]])
    return measured.stratum[measured.counts > 0]


def influence(measured: WeightedScores) -> Floats:
    """Influence z of each sampled unit with a count above 0 on each score, linearised: [sampled scores].

    Rows are centred within their strata and scaled by sqrt(units / (units - strata)), so that ``z.T @ z`` is
    the covariance of the scores. There are more units than strata.

    Source: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 5.5 (linearisation).
    """
    added, strata = sums_of_units(measured, measured.slopes()), group_members(sampled_strata(measured))
    for members in strata:
        added[members] -= added[members].mean(axis=0)
    return np.asarray(added * np.sqrt(len(added) / (len(added) - len(strata))), np.float64)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Covariance of several scores, as a sum of independent parts: from the units, and from random draws."""

    parts: list[Part]

    @classmethod
    def of(cls, measured: WeightedScores) -> "Uncertainty | None":
        """Uncertainty of the scores; None if there are too few units to estimate a variance.

        The degrees of freedom are the effective number of units of unequal weight, minus the number of
        strata.

        Source: Kish, Survey Sampling, 1965 (the effective number of units).
        """
        stratum = sampled_strata(measured)
        units, strata = len(stratum), len(np.unique(stratum))
        if units <= strata:
            return None
        counts = sums_of_units(measured, measured.counts)
        effective = float(counts.sum() ** 2 / (counts**2).sum())
        freedom = max(1.0, effective - strata - FEWER * (counts > 1).any())
        return cls([(influence(measured), freedom), *measured.chance()])

    @property
    def covariance(self) -> Floats:
        """[scores scores]."""
        return np.asarray(sum(rows.T @ rows for rows, _ in self.parts), np.float64)

    def errors(self, reference: int | None = None) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom [scores] of all scores, or of their differences from one."""
        variances = [(rows**2).sum(axis=0) for rows, _ in self.parts]
        if reference is None:
            return self._welch(variances)
        both = np.sum([each + each[reference] for each in variances], axis=0)
        apart = [((rows - rows[:, [reference]]) ** 2).sum(axis=0) for rows, _ in self.parts]
        return self._welch(apart, both)

    def pairs(self) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom of all pairwise differences: [scores scores] each."""
        covariances = [rows.T @ rows for rows, _ in self.parts]
        sums = [np.add.outer(np.diag(each), np.diag(each)) for each in covariances]
        apart = [both - 2 * each for both, each in zip(sums, covariances, strict=True)]
        return self._welch(apart, np.sum(sums, axis=0))

    def _welch(self, variances: list[Floats], both: Floats | None = None) -> tuple[Floats, Floats]:
        """Standard errors and degrees of freedom of sums of variances. Source: Welch, Biometrika 34, 1947.

        Variances of differences are 0 below a share `ALIKE` of ``both``, those of the two scores together.
        """
        total = np.sum(variances, axis=0)
        if both is not None:
            total = np.where(total > ALIKE * both, total, 0)
        # parts of the sum, since squares of very small variances are 0
        parts = [
            np.divide(variance, total, out=np.zeros_like(total), where=total > 0) for variance in variances
        ]
        per_freedom = sum(part**2 / freedom for part, (_, freedom) in zip(parts, self.parts, strict=True))
        freedom = np.divide(1, per_freedom, out=np.full_like(total, self.parts[0][1]), where=total > 0)
        return np.sqrt(total), freedom


def share_intervals(measured: Ratios | ClassRatios) -> tuple[Floats, Floats]:
    """Ends of confidence intervals of shares, from the value of a miss to that of a hit: [scores].

    NaN for too few units.

    The interval is the exact one of Clopper and Pearson for an effective number of independent trials: the
    number at which the share would have its estimated variance. It equals the number of trials if every unit
    is one trial. The variance is that of `Uncertainty`. Its part from the units is shrunk, with the weight of
    `PRIOR` units, towards that of units whose trials all hit or all miss, since a few misses say little about
    it. Raises ValueError if a score is not a share.

    Source: Korn and Graubard, Confidence Intervals for Proportions With Small Expected Number of Positive
    Counts Estimated From Survey Data, Survey Methodology 24, 1998.
    """
    trials = measured.trials
    if trials is None or not np.isfinite(trials.hit).all():
        raise ValueError("expected scores of hits or shares, found others")
    if (uncertainty := Uncertainty.of(measured)) is None:
        return (np.full(measured.scores, np.nan),) * 2
    miss, width = trials.miss, trials.hit - trials.miss
    share = np.clip((measured.evaluate()[0] - miss) / width, 0, 1)
    tail = (1 - LEVEL) / 2
    error, freedom = uncertainty.errors()
    count = _independent(measured, trials, share, (error / width) ** 2)
    items = trials.count.sum(axis=0)
    count = count * (stdtrit(items - 1, tail) / stdtrit(freedom, tail)) ** 2
    hits = count * share
    low, high = betaincinv(hits, count - hits + 1, tail), betaincinv(hits + 1, count - hits, 1 - tail)
    low, high = np.where(share == 0, 0, low), np.where(share == 1, 1, high)
    return miss + width * low, miss + width * high


def _independent(measured: Ratios | ClassRatios, trials: Trials, share: Floats, variance: Floats) -> Floats:
    """Number of independent trials with the variance of each share: [scores]."""
    weight = measured.weights
    count = trials.count if trials.count.ndim == 2 else trials.count[:, None]
    each = np.divide(weight[:, None] ** 2, count, out=np.zeros_like(count), where=count > 0)
    # squared weights of trials, and of units: the variance as a multiple of share x (1 - share)
    alone, together = each.sum(axis=0), float((weight**2).sum())
    items = count.sum(axis=0)
    mixed = share * (1 - share) / (items - 1) * items
    inverse = np.divide(variance, mixed, out=np.full_like(share, together), where=mixed > 0)
    if isinstance(measured, ClassRatios):
        whole = measured.whole.sum(axis=2)
        part = np.divide(measured.part.sum(axis=2), whole, out=np.zeros_like(whole), where=whole > 0).T
        part = part[measured.counts > 0]
    else:
        counting = measured.counts > 0
        part = measured.totals[counting] / measured.counts[counting, None]
        part = (part - trials.miss) / (trials.hit - trials.miss)
    # number of units that contain the rarer of hit and miss
    informed = np.where(share < 0.5, (part > 0).sum(axis=0), (part < 1).sum(axis=0))
    inverse = (informed * inverse + PRIOR * together) / (informed + PRIOR)
    return np.asarray(1 / np.maximum(inverse, alone), np.float64)


@dataclass(frozen=True, slots=True)
class Differences:
    """Paired differences [scores] from a reference, with intervals and two-sided p; NaN if undefined."""

    value: Floats
    low: Floats
    high: Floats
    p: Floats


def intervals(measured: WeightedScores) -> tuple[Floats, Floats]:
    """Ends of confidence intervals [scores], in the scores' unit; NaN for too few units.

    Shares have the intervals of `share_intervals`. Others have Student's intervals from the linearised
    standard error, which may exceed the range of the scores; for those with a bound they are Student's
    intervals of the logarithm of the distance from it, by the delta method.

    docs/explanation/simulations.md reports their coverage in simulations. Be careful with the NMI of clusters
    with only a few items of each class: it decreases with the number of items.
    """
    if (uncertainty := Uncertainty.of(measured)) is None:
        return (np.full(measured.scores, np.nan),) * 2
    error, freedom = uncertainty.errors()
    score, reach = measured.evaluate()[0], stdtrit(freedom, (1 + LEVEL) / 2) * error
    low, high = score - reach, score + reach
    if isinstance(measured, ClassRatios):
        return share_intervals(measured)
    if isinstance(measured, Ratios) and measured.bound is not None:
        apart = score - measured.bound
        factor = np.exp(np.divide(reach, abs(apart), out=np.zeros_like(reach), where=apart != 0))
        ends = measured.bound + apart / factor, measured.bound + apart * factor
        low, high = np.minimum(*ends), np.maximum(*ends)
    if isinstance(measured, Ratios) and measured.trials is not None:
        shares = np.flatnonzero(np.isfinite(measured.trials.hit))
        low[shares], high[shares] = share_intervals(measured.columns(shares))
    return low, high


def farthest_apart(measured: WeightedScores) -> float:
    """The largest difference that two scores can have; infinite for scores that are no shares."""
    if not isinstance(measured, Ratios):
        return 1.0
    if measured.trials is None or not np.isfinite(hit := float(measured.trials.hit[0])):
        return np.inf
    return hit - measured.trials.miss


def differences(measured: WeightedScores, reference: int) -> Differences:
    """Differences of all scores from that of the reference, with Student's paired intervals and p.

    p is 1 for a difference of 0, and 0 for another difference without variance.
    """
    scores = measured.evaluate()[0]
    value = without_rounding(scores - scores[reference], scores)
    if (uncertainty := Uncertainty.of(measured)) is None:
        nothing = np.full(measured.scores, np.nan)
        return Differences(value, nothing, nothing, np.where(value == 0, 1.0, np.nan))
    error, freedom = uncertainty.errors(reference)
    reach = stdtrit(freedom, (1 + LEVEL) / 2) * error
    with np.errstate(divide="ignore"):
        p = 2 * stdtr(freedom, -np.abs(value) / np.where(value == 0, 1, error))
    most = farthest_apart(measured)
    return Differences(value, np.maximum(value - reach, -most), np.minimum(value + reach, most), p)


def paired_halves(measured: WeightedScores) -> tuple[Floats, Floats]:
    """Differences of the first half of the scores from the second, in pairs, and half their intervals.

    [pairs] each; half an interval is NaN for too few units.
    """
    scores = measured.evaluate()[0]
    first, second = np.split(np.arange(len(scores)), 2)
    value = without_rounding(scores[first] - scores[second], scores)
    if (uncertainty := Uncertainty.of(measured)) is None:
        return value, np.full(len(value), np.nan)
    error, freedom = uncertainty.pairs()
    return value, stdtrit(freedom[first, second], (1 + LEVEL) / 2) * error[first, second]


def choose_on_halves(measured: WeightedScores, splits: int = 100, seed: int = 0) -> tuple[Floats, Floats]:
    """Choose the best score on one half of the units and report it on the other, both ways, over many splits.

    Some scores depend on the number of units: purity is larger on a half than on the whole. So the score of a
    half is defined as the score on all units plus or minus half the difference of the two halves. The
    reported score is then never above the best one on all units. Splits are stratified and the same for all
    scores; splits with an empty half are left out. Ties go to the lower index.

    Returns the share of choices that fell on each score, [scores], and its mean held-out score then,
    [scores]; NaN if undefined.
    """
    full = measured.evaluate()[0]
    mask = halves(measured.stratum, splits, seed)
    first, second = (measured.evaluate(half.astype(np.float64)) for half in (mask, ~mask))
    gap = (first - second)[np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)] / 2
    if not gap.size:
        return np.full(len(full), np.nan), np.full(len(full), np.nan)
    chosen_on = full + np.concatenate([gap, -gap])
    pick = np.argmax(without_last_digits(chosen_on), axis=1)
    reported = (2 * full - chosen_on)[np.arange(len(pick)), pick]
    times = np.bincount(pick, minlength=len(full))
    sums = np.bincount(pick, weights=reported, minlength=len(full))
    held_out = np.divide(sums, times, out=np.full(len(full), np.nan), where=times > 0)
    return times / len(pick), held_out


def without_rounding(values: Floats, scores: Floats) -> Floats:
    """Differences of scores, with 0 for those that are rounding errors."""
    return np.where(np.abs(values) < np.abs(scores).max(initial=1) * 10.0**-DIGITS, 0, values)


def without_last_digits(scores: Floats) -> Floats:
    """Scores without rounding errors of sums, which depend on the position of a column in a matrix."""
    return np.asarray(np.round(scores / np.abs(scores).max(initial=1), DIGITS), dtype=np.float64)
