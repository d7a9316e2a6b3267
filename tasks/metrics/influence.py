"""What each unit does to scores that are means: their covariances without any resample."""

import numpy as np

from tasks.metrics.arrays import Floats
from tasks.metrics.draws import members_of
from tasks.metrics.resampling import Ratios, WeightedScores


def sample(measured: WeightedScores) -> tuple[int, int]:
    """Units and strata that count."""
    counting = measured.counts > 0
    return int(counting.sum()), len(np.unique(measured.stratum[counting]))


def influence(measured: Ratios) -> Floats:
    """What the units that count add to each score, linearised: [units scores].

    Rows are centred in their strata and widened by sqrt(units / (units - strata)), so that ``z.T @ z`` is the
    covariance of the scores as the bootstrap finds it, less its shortfall in few units.

    Raises:
        ValueError: There are no more units than strata.

    Source: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 5.5 (linearisation).
    """
    units, strata = sample(measured)
    if units <= strata:
        raise ValueError(f"expected more units than strata, found {units} and {strata}")
    counting = measured.counts > 0
    group, stratum, counts = measured.group[counting], measured.stratum[counting], measured.counts[counting]
    added: Floats = measured.totals[counting].astype(np.float64)
    groups = members_of(group)
    for members in groups:
        count = counts[members].sum()
        ratio = added[members].sum(axis=0) / count
        added[members] = (added[members] - counts[members, None] * ratio) / (count * len(groups))
    for members in members_of(stratum):
        added[members] -= added[members].mean(axis=0)
    return np.asarray(added * np.sqrt(units / (units - strata)), np.float64)
