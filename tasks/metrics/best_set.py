"""Which candidates may be the best one: a set that holds all that are as good as the best, at a level.

With it, p-values of several tests that hold for all of them together.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.metrics.uncertainty import Uncertainty, WeightedScores, without_rounding
from layerboard.tasks.metrics.weighted import members_of

DRAWS = 5_000  # of the largest difference
# by how many of its standard errors a layer may be nearer to the best one of its backbone than was measured,
# where that is a rival, and further from it, where that is the candidate: both found by simulation
NEARER, FURTHER = -2.0, 0.5
HOPELESS = 4.0  # standard errors below the highest score at which a candidate is no rival any more


def best_set(
    measured: WeightedScores,
    candidate: Sequence[int] | None = None,
    level: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
) -> NDArray[np.bool_] | None:
    """Which candidates may be the best: [candidates], the one of the highest score always among them.

    With the level's probability all candidates are in it that are truly as good as the best one, however many
    there are and though the best was found on the same units. A candidate with several scores (layers), as
    ``candidate`` says of each score, from 0, is as good as the best of them, and that choice, on the same
    units, too, is allowed for.

    How far each rival's best score is above a candidate's, in standard errors of their difference, is held
    against draws of what it is where all are equal: normal numbers with the covariance of the scores, of the
    tails of Student's t. In a draw the best of several scores counts, as it does in what was measured: a
    rival's are nearer to each other than they were measured, so that the best of them is as lucky as it can
    have been, and a candidate's further apart, so that it is not luckier than it was (`NEARER`, `FURTHER`).
    Candidates beyond what the draws reach are out, and what is left is tested again, since fewer differences
    reach less far.

    None where units are too few to vary. Raises ValueError where candidates are not as many as scores, or the
    level is outside (0, 1).

    Source: Romano and Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing, JASA 100,
    2005 (the steps); Hansen, Lunde and Nason, The Model Confidence Set, Econometrica 79, 2011 (the set).
    """
    owner = np.arange(measured.scores) if candidate is None else np.asarray(candidate, np.int64)
    if owner.shape != (measured.scores,) or not 0 < level < 1:
        values = f"{len(owner)} and {level}"
        raise ValueError(f"expected {measured.scores} candidates and a level between 0 and 1, found {values}")
    if (uncertainty := Uncertainty.of(measured)) is None:
        return None
    scores = measured.evaluate()[0]
    layers = members_of(owner)
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
    inside[kept] = _steps(height[pairs], error[pairs], rival, lucky, level)
    return inside


def _heights(scores: Floats, error: Floats, freedom: Floats) -> Floats:
    """How far the column's score is above the row's: [candidates candidates].

    In standard errors of a normal number of the same tail as Student's; infinitely far where they differ and
    never vary.
    """
    value = without_rounding(scores - scores[:, None], scores)
    with np.errstate(divide="ignore"):
        return np.asarray(-ndtri(stdtr(freedom, -value / np.where(value == 0, 1, error))), np.float64)


def _normal(covariance: Floats, draws: int, seed: int) -> Floats:
    """Draws [R scores] around 0 of normal numbers with a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    # the symmetric root, which is unique: no sign of an eigenvector changes the draws
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return np.asarray(np.random.default_rng(seed).normal(size=(draws, len(root))) @ root)


def _highest(normal: Floats, scores: Floats, layers: Integers, error: Floats, further: float) -> Floats:
    """The highest score of one candidate's layers in each draw: [R].

    They are as far below the best one as they were measured, and by ``further`` standard errors more.
    """
    top = layers[np.argmax(scores[layers])]
    gap = np.maximum(0, scores[top] - scores[layers] + further * error[top, layers])
    return np.asarray((normal[:, layers] - gap).max(axis=1), np.float64)


def _steps(
    height: Floats, error: Floats, rival: Floats, candidate: Floats, level: float
) -> NDArray[np.bool_]:
    """Which candidates stay below what the draws reach: [candidates].

    Args:
        height: How far the column's candidate is above the row's, in standard errors.
        error: These standard errors, [candidates candidates].
        rival: Each candidate's score in each draw where it is a rival, [R candidates].
        candidate: The same where it is the one that is compared with its rivals.
        level: With which the set holds all that are as good as the best.
    """
    scale = np.where((error > 0) & ~np.eye(len(error), dtype=bool), error, np.inf)
    inside = np.ones(len(height), dtype=bool)
    # the place where what was measured would be among the draws, itself one of them: no finite number of
    # draws makes the error larger (Davison and Hinkley, Bootstrap Methods, 1997, section 4.2)
    rank = math.ceil((len(rival) + 1) * level) - 1
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
    """Adjusted p-values [tests]: those below a level hold together, any wrong one with at most that chance.

    The tests may depend on each other in any way; NaN counts as no test.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics
    6, 1979.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted
