"""How much of what a layer's grid allows its score is, where the ground truth alone says how much that is."""

from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.best import best_layers
from leaderboards.choices.selection import Column, score_rows
from tasks.base import ceiling_metric


@dataclass(frozen=True, slots=True)
class Allowed:
    """The best layer of a backbone in a column, and the ceiling of its grid, in percent."""

    backbone: str
    layer: int
    score: float
    ceiling: float


def allowed(records: pd.DataFrame, column: Column) -> tuple[Allowed, ...]:
    """The best layers of a column beside the ceilings of their grids; empty where no ceiling is known.

    Args:
        records: Scores of one suite.
        column: Task, dataset, protocol and metric.
    """
    best = column.rows(best_layers(records))
    best = best[best["metric"] == column.metric]
    rows = column.rows(score_rows(records))
    rows = rows[(rows["metric"] == ceiling_metric(column.metric)) & (rows["tap"] == "block")]
    places = zip(rows["backbone"], rows["layer"], rows["pooling"], strict=True)
    ceilings = {key: float(value) for key, value in zip(places, rows["value"], strict=True)}
    return tuple(
        Allowed(str(one.backbone), int(one.layer), float(one.value), ceilings[key])  # type: ignore[arg-type]
        for one in best.itertuples(index=False)
        if (key := (one.backbone, one.layer, one.pooling)) in ceilings and ceilings[key] > 0
    )
