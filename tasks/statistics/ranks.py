"""Ranks that the data allow: for each candidate the first and the last rank that agree with them.

A rank counts candidates that score higher. Two candidates are in a known order if the difference of their
scores is significant in a test of all pairs at once; the others may be in either order.

Source: Mogstad, Romano, Shaikh and Wilhelm, Inference for Ranks with Applications to Mobility across
Neighbourhoods and Academic Achievement across Countries, Review of Economic Studies 91, 2024.
"""

from collections.abc import Sequence

import numpy as np

from layerboard.tasks.metrics.arrays import Features, Floats, Integers, Mask
from layerboard.tasks.statistics.draws import (
    DRAWS,
    HOPELESS,
    ORDER_LEVEL,
    largest_difference,
    normal_draws,
    quantile_of,
    uncertainty_of,
    z_scores,
)
from layerboard.tasks.statistics.mcb import compare_with_best
from layerboard.tasks.statistics.uncertainty import WeightedScores
from layerboard.tasks.statistics.weighted import group_members


def rank_ranges(
    measured: WeightedScores,
    candidate: Sequence[int] | None = None,
    best: Sequence[bool] | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Integers | None:
    """The first and the last rank of each candidate, 1 for the best: [candidates 2].

    With probability `LEVEL`, the ranges contain the ranks of all candidates: the first one is at most 1 plus
    the number of candidates that are truly better, the last one at least the number of all candidates minus
    those that are truly worse. Exactly equal candidates count in some order. ``candidate`` gives the
    candidate of each score, from 0. One with several scores (layers) is as good as the best of them: it is
    better than another if one of its layers is shown to be better than each of the other's.

    Exactly those that may be the best, ``best`` [candidates], have a range from 1 on; None asks
    `compare_with_best`, which is wrong in 1 - `BEST_LEVEL`. If it leaves a single one, the others are ranked
    without it: all pairs of layers of different candidates are tested at `ORDER_LEVEL`, in steps, since the
    quantile of the largest difference of simulated scores is lower for the pairs that earlier steps left.
    Layers more than `HOPELESS` standard errors below the best one of their candidate take no part.

    Returns None if there are too few units to estimate a variance.

    Sources: Romano and Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing, JASA
    100, 2005 (the steps); Finner and Strassburger, The Partitioning Principle, Annals of Statistics 30, 2002
    (each order of the candidates is a hypothesis of its own, of which one is true).
    """
    owner = np.arange(measured.scores) if candidate is None else np.asarray(candidate, np.int64)
    if (uncertainty := uncertainty_of(measured)) is None:
        return None
    names = np.unique(owner)
    if best is None:
        compared = compare_with_best(measured, seed)
        maybe = np.isin(names, [] if compared is None else owner[compared.maybe])
    else:
        maybe = np.asarray(best, np.bool_)
    scores = measured.evaluate()[0]
    error, freedom = uncertainty.pairs()
    height = z_scores(scores, error, freedom)
    tops = {int(owner[layers[0]]): layers[np.argmax(scores[layers])] for layers in group_members(owner)}
    near = np.flatnonzero(height[np.arange(len(owner)), [tops[int(each)] for each in owner]] <= HOPELESS)
    pairs, candidates = np.ix_(near, near), owner[near]
    ranked = ~np.isin(candidates, names[maybe]) | (maybe.sum() > 1)
    tested = (candidates != candidates[:, None]) & ranked & ranked[:, None]
    normal = normal_draws(uncertainty, near, draws, seed)
    lower = _shown_lower(height[pairs], error[pairs], tested, normal)
    return _ranges(_shown_worse(lower, candidates, names), maybe)


def _ranges(worse: Mask, maybe: Mask) -> Integers:
    """The first and the last rank of each candidate: [candidates 2].

    ``worse`` [candidates candidates] says whether the row's is shown to be worse than the column's, ``maybe``
    [candidates] which may be the best. Of these no order is told, since each may be the first.
    """
    worse = worse & ~maybe[:, None]
    if maybe.sum() == 1:
        worse |= ~maybe[:, None] & maybe
    behind = ~maybe & ~worse[:, maybe].any(axis=1)  # the best is one more that is better, whichever it is
    return np.stack([1 + worse.sum(axis=1) + behind, len(worse) - worse.sum(axis=0)], axis=1)


def _shown_worse(lower: Mask, owner: Integers, candidates: Integers) -> Mask:
    """Whether the row's candidate is shown to be worse than the column's: [candidates candidates].

    ``lower`` [scores scores] says it of single scores, whose candidates are ``owner`` [scores]: all scores of
    the one are lower than some score of the other.
    """
    member = (owner == candidates[:, None]).astype(np.int64)
    lower_than = member @ ~lower == 0  # [candidates scores]
    return np.asarray(lower_than @ member.T > 0, np.bool_)


def _shown_lower(height: Floats, error: Floats, tested: Mask, normal: Features) -> Mask:
    """Whether the row's score is shown to be lower than the column's, after all steps: [scores scores].

    Pairs in ``tested`` are tested. ``height`` is the difference of the column's score from the row's in
    standard errors, which are in ``error``, and ``normal`` are simulated scores [scores R].
    """
    lower = tested & np.isposinf(height)  # these differ without variance
    left = tested & (error > 0)
    while left.any():
        reach = np.full(2 * normal.shape[1], -np.inf)
        for row in np.flatnonzero(left.any(axis=1)).tolist():
            gaps = largest_difference(normal, error[row], row, np.flatnonzero(left[row]))
            np.maximum(reach, gaps, out=reach)
        newly = left & (height > quantile_of(reach, ORDER_LEVEL))
        if not newly.any():
            break
        lower, left = lower | newly, left & ~newly
    return lower
