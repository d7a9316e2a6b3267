"""The best layer of each backbone in each column of the leaderboard."""

import pandas as pd

from leaderboards.choices.kept import once
from leaderboards.choices.selection import COLUMN, backbones_of, best_rows, columns_of, score_rows

BEST = [
    *("backbone", "family", "trained", *COLUMN, "pooling", "layer", "depth"),
    *("value", "ci_low", "ci_high", "n", "partial"),
]


def best_layers(records: pd.DataFrame) -> pd.DataFrame:
    """The best layer of every backbone for each task's primary metric and pooling.

    Candidates are the blocks 1..depth (neither what enters block 1 nor the output of the final norm); ties
    go to the lower layer. A backbone without any score for a task has no row there; the random floor has
    none at all, since its layers are draws.

    Args:
        records: Columns of `Record`, in any order.

    Returns:
        Columns `BEST`, in the order of the tables.
    """
    rows = score_rows(records)
    return once(rows, "best layers", lambda: _best_layers(rows))


def _best_layers(rows: pd.DataFrame) -> pd.DataFrame:
    """The best layers of some scores."""
    best = best_rows(rows[rows["primary"].astype(bool) & (rows["metric"] != "")])
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(rows))}
    places = {
        (one.task, one.dataset, one.protocol, one.data, one.metric): place
        for place, one in enumerate(columns_of(rows))
    }
    keys = best[COLUMN].itertuples(index=False, name=None)
    order = [
        (ranks[str(backbone)], places[tuple(key)])
        for backbone, key in zip(best["backbone"], keys, strict=True)
    ]
    positions = sorted(range(len(best)), key=lambda position: order[position])
    return best.iloc[positions].reset_index(drop=True)[BEST]
