"""Where another pooling than the one that a leaderboard shows scores higher."""

import math
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.kept import once
from leaderboards.choices.selection import (
    Column,
    best_rows,
    is_floor,
    pooled,
    score_rows,
    secondary_poolings,
)


@dataclass(frozen=True, slots=True)
class Better:
    """The best layer of a backbone in another pooling, where it scores higher than the one that is shown.

    Attributes:
        pooling: That pooling.
        value: Its score.
        layer: Its layer.
        depth: The backbone's number of blocks.
    """

    pooling: str
    value: float
    layer: int
    depth: int


def better_poolings(records: pd.DataFrame, column: Column) -> dict[str, Better]:
    """For each backbone whose best score in a column is of another pooling, that score.

    Args:
        records: Columns of `Record`, in any order.
        column: Task, dataset, protocol and metric.
    """
    rows = column.rows(score_rows(records))
    return once(rows, ("better poolings", column.key), lambda: _better(rows, column))


def _better(rows: pd.DataFrame, column: Column) -> dict[str, Better]:
    """The better poolings by the rows of a column."""
    rows = rows[(rows["metric"] == column.metric) & ~is_floor(rows)]
    best = best_rows(pooled(rows, column))
    shown = dict(zip(best["backbone"], best["value"], strict=True))
    found: dict[str, Better] = {}
    for pooling in secondary_poolings(rows, column):
        for row in best_rows(pooled(rows, column, pooling)).to_dict("records"):
            name, value = str(row["backbone"]), float(row["value"])
            known = found[name].value if name in found else shown.get(name, -math.inf)
            if value > known:
                found[name] = Better(pooling, value, int(row["layer"]), int(row["depth"]))
    return found
