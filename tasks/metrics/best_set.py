"""Which candidates may be the best one: a set that holds all that are as good as the best, at a level.

With it, p-values of several tests that hold for all of them together.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.resampling import Ratios, WeightedScores
from tasks.metrics.uncertainty import influence, sample

DRAWS = 5_000  # of the largest difference, where scores are means
RESAMPLES = 1_000  # of partitions
ALIKE = 1e-10  # share of the largest variance below which the variance of a difference is rounding
FEWER = 2  # degrees of freedom that units of several items lose: found by simulation of about ten of them
HOPELESS = 1e-4  # one-sided p of a difference from the highest score that no other test needs to look at


def best_set(
    measured: WeightedScores,
    candidate: Sequence[int] | None = None,
    level: float = 0.95,
    seed: int = 0,
    resamples: int | None = None,
) -> NDArray[np.bool_] | None:
    """Which candidates may be the best: [candidates], the one of the highest score always among them.

    With the level's probability all candidates are in it that are truly as good as the best one, however many
    there are and though the best was found on the same units. A candidate with several scores (layers), as
    ``candidate`` says of each score, from 0, is as good as the best of them, and that choice, on the same
    units, too, is allowed for.

    Every candidate's strongest score is compared with all scores of its rivals. The largest of those
    differences, each in units of its paired standard error, is held against the distribution that it has
    where all are equal: of normal draws with the scores' covariance where scores are means, of resamples
    where they are partitions, widened to the tails of Student's t. Candidates beyond it are out, and what is
    left is tested again, since fewer differences reach less far.

    None where units are too few to vary. Raises ValueError where candidates are not as many as scores, or the
    level is outside (0, 1).

    Source: Romano and Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing, JASA 100,
    2005 (the steps); Hansen, Lunde and Nason, The Model Confidence Set, Econometrica 79, 2011 (the set).
    """
    owner = np.arange(measured.scores) if candidate is None else np.asarray(candidate, np.int64)
    if owner.shape != (measured.scores,) or not 0 < level < 1:
        values = f"{len(owner)} and {level}"
        raise ValueError(f"expected {measured.scores} candidates and a level between 0 and 1, found {values}")
    units, strata = sample(measured)
    if units <= strata:
        return None
    covariance, draws = _spread(measured, seed, resamples)
    if not len(draws):
        return None
    scores = measured.evaluate()[0]
    lead, error = _lead(scores, covariance, owner)
    rivals = np.flatnonzero(lead[:, np.argmax(scores)] <= stdtrit(units - strata, 1 - HOPELESS))
    strongest = _strongest(lead[:, rivals].max(axis=1), owner)
    inside = np.isin(np.arange(len(strongest)), owner[rivals])
    kept = np.flatnonzero(inside)
    height = lead[np.ix_(strongest[kept], rivals)].max(axis=1)
    reach = _reach(draws, error, strongest[kept], rivals)
    inside[kept] = _steps(height, reach, level, _freedom(measured, strata))
    return inside


def _freedom(measured: WeightedScores, strata: int) -> float:
    """Degrees of freedom of a variance among units, fewer where few hold most of what counts; at least 1.

    Source: Kish, Survey Sampling, 1965 (the effective number of units of unequal weight).
    """
    counts = measured.counts
    return max(1.0, float(counts.sum() ** 2 / (counts**2).sum()) - strata - FEWER * (counts > 1).any())


def _reach(draws: Floats, error: Floats, rows: Integers, rivals: Integers) -> Floats:
    """How far each draw puts the furthest rival above each of these scores, in standard errors: [R rows]."""
    others = draws[:, rivals]
    largest = [((others - draws[:, [row]]) / error[row, rivals]).max(axis=1) for row in rows]
    return np.stack(largest, axis=1)


def _steps(height: Floats, reach: Floats, level: float, freedom: float) -> NDArray[np.bool_]:
    """Whether candidates of these heights stay below what the draws [R candidates] reach: [candidates]."""
    inside = np.ones(len(height), dtype=bool)
    # the place where what was measured would be among the draws, itself one of them: no finite number of
    # draws makes the error larger (Davison and Hinkley, Bootstrap Methods, 1997, section 4.2)
    rank = math.ceil((len(reach) + 1) * level) - 1
    while True:
        if rank >= len(reach):
            return inside
        normal = np.sort(reach[:, inside].max(axis=1))[rank]
        # every error is estimated by itself: a normal bound becomes the one of Student's t of the same tail
        bound = max(0.0, -float(stdtrit(freedom, ndtr(-normal))))
        staying = inside & (height <= bound)
        if (staying == inside).all():
            return inside
        inside = staying


def _spread(measured: WeightedScores, seed: int, resamples: int | None) -> tuple[Floats, Floats]:
    """Covariance [scores scores] of the scores, and draws [R scores] around 0 that have it."""
    if isinstance(measured, Ratios):
        added = influence(measured)
        covariance = added.T @ added
        values, vectors = np.linalg.eigh(covariance)
        # the symmetric root, which is unique: no sign of an eigenvector changes the draws
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return covariance, np.random.default_rng(seed).normal(size=(resamples or DRAWS, len(root))) @ root
    units, strata = sample(measured)
    resampled = measured.resample(resamples or RESAMPLES, seed)
    resampled = resampled[np.isfinite(resampled).all(axis=1)]
    draws = (resampled - resampled.mean(axis=0)) * np.sqrt(units / (units - strata))
    return draws.T @ draws / len(draws), draws


def _lead(scores: Floats, covariance: Floats, owner: Integers) -> tuple[Floats, Floats]:
    """How far the column's score is above the row's, in standard errors, and these: [scores scores] each.

    Infinitely far where they never vary and differ, 0 among the scores of one candidate; an error is infinite
    where both are one, or of one candidate.
    """
    own = np.diag(covariance)
    variance = own[:, None] + own - 2 * covariance
    error = np.sqrt(np.where(variance > ALIKE * own.max(initial=0), variance, 0))
    value = scores - scores[:, None]
    value[np.abs(value) < np.abs(scores).max(initial=1) * 1e-12] = 0
    value[owner[:, None] == owner] = 0
    error[owner[:, None] == owner] = np.inf
    with np.errstate(divide="ignore"):
        studentised = value / np.where(value == 0, 1, error)
    return studentised, np.where(error > 0, error, np.inf)


def _strongest(worst: Floats, owner: Integers) -> Integers:
    """For each candidate the score that the rivals are least above: [candidates]."""
    order = np.lexsort((np.arange(len(owner)), worst, owner))
    return order[np.unique(owner[order], return_index=True)[1]]


def holm(p: Floats) -> Floats:
    """Adjusted p-values [tests]: those below a level hold together, any wrong one with at most that chance.

    The tests may depend on each other in any way; NaN counts as no test.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics
    6, 1979.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
