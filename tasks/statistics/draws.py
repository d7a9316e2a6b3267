"""What tests of many differences at once share: their uncertainty, z-scores, and simulated normal draws."""

import math

import numpy as np
from scipy.special import ndtri, stdtr

from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.statistics.uncertainty import LEVEL, Uncertainty, WeightedScores, without_rounding
from layerboard.tasks.statistics.weighted import Ratios

DRAWS = 2_000  # simulated scores, each with both signs, behind ranks and what a sample resolves
BEST_DRAWS = 8_000  # those behind the best and losses, which move by 1 % with the seed, 3 % for six videos
DRAWN = 1_000  # most units that are drawn one by one
# Which scores may be the best is wrong in 4 %, the order of the others in 1 %: together in `LEVEL`. The tests
# of the order are two-sided, of which one side is wrong.
BEST_LEVEL, ORDER_LEVEL = 0.96, 0.98
# scores more than this many standard errors below the best one of their candidate are left out of tests
HOPELESS = 4.0


def uncertainty_of(measured: WeightedScores) -> Uncertainty | None:
    """`Uncertainty` for tests of differences; None if there are too few units to estimate a variance.

    If scores are rates of hits, the variance of each is that of one more unit that differs from all others: a
    few differing units, or none, say little about how many there would be in another sample.

    Source: Bonett and Price, Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based
    on Paired Data, Journal of Educational and Behavioral Statistics 37, 2012 (one unit of either kind).
    """
    uncertainty = Uncertainty.of(measured)
    return None if uncertainty is None else with_one_more(uncertainty, measured)


def with_one_more(uncertainty: Uncertainty, measured: WeightedScores) -> Uncertainty:
    """`uncertainty_of` the scores, from their `Uncertainty`."""
    if not (step := unit_step(measured)):
        return uncertainty
    return Uncertainty([*uncertainty.parts, (step * np.eye(measured.scores), uncertainty.parts[0][1])])


def unit_step(measured: WeightedScores) -> float:
    """How far a rate of hits moves if all trials of one unit of mean weight turn; 0 for other scores."""
    if not isinstance(measured, Ratios) or measured.trials is None:
        return 0.0
    counts, hit = measured.counts, measured.trials.hit
    with np.errstate(invalid="ignore"):
        rest = measured.totals % hit
        whole = np.isclose(rest, 0) | np.isclose(rest, hit)
    if not whole.all():  # percentages of pairs have the interval of hits, and are none
        return 0.0
    return float(hit[0] * (counts**2).sum() / counts.sum() ** 2)


def z_scores(scores: Floats, error: Floats, freedom: Floats) -> Floats:
    """Difference of the column's score from the row's, as a normal z-score: [scores scores].

    Student's t is converted to the z-score with the same tail probability. It is infinite if two scores
    differ and their difference has no variance.
    """
    value = without_rounding(scores - scores[:, None], scores)
    with np.errstate(divide="ignore"):
        return np.asarray(-ndtri(stdtr(freedom, -value / np.where(value == 0, 1, error))), np.float64)


def normal_draws(uncertainty: Uncertainty, scores: Integers, draws: int, seed: int) -> Features:
    """Normal draws [scores R] float32 with mean 0 and the covariance of some of the scores.

    Each draw weighs the units at random, so that those of a score are the same whichever others there are.
    More than `DRAWN` units would be slow to draw: a root of the covariance takes their place, whose draws
    move with the other scores by chance.
    """
    rows = np.concatenate([rows[:, scores] for rows, _ in uncertainty.parts])
    if len(rows) > max(DRAWN, len(scores)):
        values, vectors = np.linalg.eigh(uncertainty.covariance[np.ix_(scores, scores)])
        # the symmetric root, which is unique: no sign of an eigenvector changes the draws
        rows = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    weights = np.random.default_rng(seed).standard_normal((len(rows), draws), np.float32)
    return np.asarray(rows.T.astype(np.float32) @ weights)


def largest_difference(normal: Features, error: Floats, candidate: int, rivals: Integers) -> Floats:
    """Largest difference of some rivals from a candidate in each draw, in standard errors: [2R].

    ``normal`` are draws of all scores [scores R], and ``error`` [scores] is the standard error of each one's
    difference from the candidate; rivals without an error do not count. Each draw counts with both signs,
    which are equally likely: the second R values are those of the other.
    """
    others = rivals[(error[rivals] > 0) & (rivals != candidate)]
    differences = normal[others]
    differences -= normal[candidate]
    differences /= error[others, None].astype(np.float32)
    ends = differences.max(axis=0, initial=-math.inf), -differences.min(axis=0, initial=math.inf)
    return np.concatenate(ends, dtype=np.float64)


def quantile_of(reach: Floats, level: float = LEVEL) -> float:
    """The quantile of draws [R] at a level; infinite for too few of them, such as 18 at 95 %.

    The measurement counts as one of the draws, so that a finite number of them never increases the error rate
    (Davison and Hinkley, Bootstrap Methods, 1997, section 4.2).
    """
    rank = math.ceil((len(reach) + 1) * level) - 1
    return float(np.partition(reach, rank)[rank]) if rank < len(reach) else math.inf
