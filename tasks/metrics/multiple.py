"""Several tests at once: p-values that hold for all of them together."""

import numpy as np

from tasks.metrics.arrays import Floats


def holm(p: Floats) -> Floats:
    """Adjusted p-values [tests]: those below a level hold together, any wrong one with at most that chance.

    Args:
        p: p-values [tests] in [0, 1], of tests that may depend on each other in any way; NaN where there is
            none, which counts as no test.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics
    6, 1979.
    """
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
