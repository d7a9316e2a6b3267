"""Confidence set of the best candidates, and p-values adjusted for several tests."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.uncertainty import LEVEL, Uncertainty, WeightedScores, without_rounding
from layerboard.tasks.statistics.weighted import group_members

DRAWS = 5_000  # simulated values of the largest difference
# In the draws, each layer of a rival is `NEARER` standard errors closer to its backbone's best layer than was
# measured, and each layer of the candidate `FURTHER` standard errors below it. Both were found by simulation.
NEARER, FURTHER = -2.0, 0.5
HOPELESS = 4.0  # candidates more than this many standard errors below the highest score are excluded at once


def best_set(
    measured: WeightedScores, candidate: Sequence[int] | None = None, seed: int = 0, draws: int = DRAWS
) -> NDArray[np.bool_] | None:
    """Whether each candidate may be the best, [candidates]; the one with the highest score always may.

    With probability `LEVEL` the set contains every candidate that is truly as good as the best, however
    many candidates there are, even though the best was chosen on the same units. ``candidate`` gives the
    candidate of each score, from 0. A candidate with several scores (layers) is as good as the best of them;
    the test allows for this choice, too, which was made on the same units.

    The test statistic is the difference between a rival's best score and the candidate's, in standard errors
    of the difference. Its null distribution is simulated: normal numbers with the covariance of the scores,
    and the tails of Student's t. Each draw takes the best of several scores, as the measurement does. In the
    draws, the layers of a rival are closer together than was measured, so that their best is as lucky as it
    may have been, and those of a candidate are further apart, so that their best is no luckier than it was
    (`NEARER`, `FURTHER`). Candidates with a difference beyond the quantile of the draws are excluded. The
    rest is tested again, since the quantile of fewer differences is lower.

    Returns None if there are too few units to estimate a variance. Raises ValueError if ``candidate`` does
    not name one for each score.

    Source: Romano and Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing, JASA 100,
    2005 (the steps); Hansen, Lunde and Nason, The Model Confidence Set, Econometrica 79, 2011 (the set).
    """
    owner = np.arange(measured.scores) if candidate is None else np.asarray(candidate, np.int64)
    if owner.shape != (measured.scores,):
        raise ValueError(f"expected {measured.scores} candidates, found {len(owner)}")
    if (uncertainty := Uncertainty.of(measured)) is None:
        return None
    scores = measured.evaluate()[0]
    layers = group_members(owner)
    top = np.array([places[np.argmax(scores[places])] for places in layers])
    errors, freedom = uncertainty.pairs()
    error, freedom = errors[np.ix_(top, top)], freedom[np.ix_(top, top)]
    height = _heights(scores[top], error, freedom)
    inside = height[:, np.argmax(scores[top])] <= HOPELESS
    kept = np.flatnonzero(inside)
    normal = _normal(uncertainty.covariance, draws, seed)
    rival, lucky = (
        np.stack([_highest(normal, scores, layers[each], errors, further) for each in kept], axis=1)
        for further in (NEARER, FURTHER)
    )
    pairs = np.ix_(kept, kept)
    inside[kept] = _steps(height[pairs], error[pairs], rival, lucky)
    return inside


def _heights(scores: Floats, error: Floats, freedom: Floats) -> Floats:
    """Difference of the column's score from the row's, as a normal z-score: [candidates candidates].

    Student's t is converted to the z-score with the same tail probability. It is infinite if two scores
    differ and their difference has no variance.
    """
    value = without_rounding(scores - scores[:, None], scores)
    with np.errstate(divide="ignore"):
        return np.asarray(-ndtri(stdtr(freedom, -value / np.where(value == 0, 1, error))), np.float64)


def _normal(covariance: Floats, draws: int, seed: int) -> Floats:
    """Normal draws [R scores] with mean 0 and a covariance [scores scores]."""
    values, vectors = np.linalg.eigh(covariance)
    # the symmetric root, which is unique: no sign of an eigenvector changes the draws
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return np.asarray(np.random.default_rng(seed).normal(size=(draws, len(root))) @ root)


def _highest(normal: Floats, scores: Floats, layers: Integers, error: Floats, further: float) -> Floats:
    """Highest score of one candidate's layers in each draw: [R].

    Each layer is as far below the best one as was measured, plus ``further`` standard errors.
    """
    top = layers[np.argmax(scores[layers])]
    gap = np.maximum(0, scores[top] - scores[layers] + further * error[top, layers])
    return np.asarray((normal[:, layers] - gap).max(axis=1), np.float64)


def _steps(height: Floats, error: Floats, rival: Floats, candidate: Floats) -> NDArray[np.bool_]:
    """Whether each candidate remains after all steps of the test: [candidates].

    Args:
        height: Difference of the column's score from the row's, in standard errors, [candidates candidates].
        error: Standard errors of the differences, [candidates candidates].
        rival: Score of each candidate in each draw, as a rival, [R candidates].
        candidate: The same, as the candidate that is compared with its rivals.
    """
    scale = np.where((error > 0) & ~np.eye(len(error), dtype=bool), error, np.inf)
    inside = np.ones(len(height), dtype=bool)
    # the measurement counts as one of the draws, so that a finite number of draws never increases the error
    # rate (Davison and Hinkley, Bootstrap Methods, 1997, section 4.2)
    rank = math.ceil((len(rival) + 1) * LEVEL) - 1
    while rank < len(rival):
        reach = np.max(
            [
                ((rival[:, inside] - candidate[:, [row]]) / scale[row, inside]).max(axis=1)
                for row in np.flatnonzero(inside)
            ],
            axis=0,
        )
        staying = inside & (height[:, inside].max(axis=1) <= max(0.0, float(np.sort(reach)[rank])))
        if (staying == inside).all():
            break
        inside = staying
    return inside


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
