"""The mean rank of backbones over the columns of a leaderboard."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import Estimate
from layerboard.leaderboards.board.frames import INTERVAL

DRAWS, SEED = 2_000, 0
SIGMAS = 1.959964  # standard errors in half of a 95 % interval


def mean_ranks(columns: Sequence[Column]) -> dict[str, Estimate]:
    """The mean rank of each backbone's best layer; empty unless all have scores in each of several columns.

    The best has rank 1, and equal scores share the mean of their ranks. Intervals are percentiles of `DRAWS`
    draws of every score from a normal distribution as wide as its own interval, as if scores were
    independent; since the images are the same for all backbones, the true intervals are rather narrower.
    """
    tables = [column.best.set_index("backbone")[INTERVAL] for column in columns]
    names = sorted({str(name) for table in tables for name in table.index})
    if len(tables) < 2 or len(names) < 2 or any(len(table) < len(names) for table in tables):
        return {}
    values, low, high = np.stack([table.loc[names].T.to_numpy(float) for table in tables], axis=-1)
    errors = (high - low) / (2 * SIGMAS)
    drawn = np.random.default_rng(SEED).normal(values, np.nan_to_num(errors), (DRAWS, *values.shape))
    by_column = pd.DataFrame(drawn.transpose(0, 2, 1).reshape(-1, len(names))).rank(axis=1, ascending=False)
    ranks = by_column.to_numpy().reshape(DRAWS, -1, len(names)).mean(axis=1)
    ends = np.percentile(ranks, [2.5, 97.5], axis=0)
    if np.isnan(errors).any():
        ends[:] = np.nan
    own = pd.DataFrame(values).rank(ascending=False).mean(axis=1)
    return {name: Estimate(*map(float, rank)) for name, *rank in zip(names, own, *ends, strict=True)}
