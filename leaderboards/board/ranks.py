"""The mean rank of backbones over the columns of a leaderboard."""

from collections.abc import Sequence

import pandas as pd

from layerboard.leaderboards.board.column import Column


def mean_ranks(columns: Sequence[Column]) -> dict[str, float]:
    """The mean rank of each backbone's best layer; empty unless all have scores in each of several columns.

    The best has rank 1, and equal scores share the mean of their ranks. It has no interval: one that is drawn
    from the errors of the scores covers the true mean rank far too seldom if scores are nearly equal. Which
    ranks the data allow in each column is in `ColumnStanding`.
    """
    tables = [column.best.set_index("backbone")["value"].astype(float) for column in columns]
    names = sorted({str(name) for table in tables for name in table.index})
    if len(tables) < 2 or len(names) < 2 or any(len(table) < len(names) for table in tables):
        return {}
    ranks = pd.concat([table.loc[names].rank(ascending=False) for table in tables], axis=1).mean(axis=1)
    return {name: float(rank) for name, rank in zip(names, ranks.loc[names], strict=True)}
