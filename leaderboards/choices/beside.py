"""Metrics that stand beside a task's own: of kinds of its items, ceilings, and what a rule does."""

import numpy as np
import pandas as pd

from leaderboards.choices.best import best_layers
from leaderboards.choices.selection import Column, score_rows
from tasks.base import area_ceiling_metric, ceiling_metric
from tasks.keypoints.kinds import AZIMUTH, KINDS, MISTAKABLE
from tasks.keypoints.problem import PULL

TURNS, LEVELS = (
    tuple(f"{field} {level}" for field, levels in kinds.items() for level in levels)
    for kinds in (AZIMUTH, KINDS)
)
NAMES = (*LEVELS, *TURNS, MISTAKABLE)
"""Kinds of keypoints, in the order of tables."""

CEILINGS = (ceiling_metric(""), area_ceiling_metric(""))


def kind_of(metric: str) -> str:
    """The kind of items that a metric is of; "" of all."""
    return next((name for name in NAMES if metric.endswith(f" {name}")), "")


def is_beside(metric: str) -> bool:
    """Whether a metric is shown in a table of its own, not among its task's."""
    return bool(kind_of(metric)) or metric == PULL or metric.endswith(CEILINGS)


def at_best(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """All scores of the layers that are best in a column's metric.

    Args:
        records: Scores of one suite.
        column: Task, dataset, protocol and metric.
    """
    best = column.rows(best_layers(records))
    best = best[best["metric"] == column.metric]
    rows = column.rows(score_rows(records))
    rows = rows[(rows["tap"] == "block") & (rows["metric"] != "")]
    places = set(zip(best["backbone"], best["layer"], best["pooling"], strict=True))
    found = zip(rows["backbone"], rows["layer"], rows["pooling"], strict=True)
    return rows[np.array([place in places for place in found], dtype=bool)]
