"""How much of what a layer's grid allows its score is, where the ground truth alone says how much that is."""

import math
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.beside import at_best
from leaderboards.choices.selection import Column
from tasks.base import area_ceiling_metric, ceiling_metric


@dataclass(frozen=True, slots=True)
class Allowed:
    """The best layer of a backbone in a column, and the ceiling of its grid, in percent.

    Attributes:
        backbone: Its name.
        layer: Its best block.
        score: Of that block.
        ceiling: What the ground truth gets on its grid.
        by_area: What it gets where cells know exactly how much of them is of what; NaN where nobody asks.
    """

    backbone: str
    layer: int
    score: float
    ceiling: float
    by_area: float = math.nan

    @property
    def has_area(self) -> bool:
        """Whether a ceiling by area is known."""
        return not math.isnan(self.by_area)


def allowed(records: pd.DataFrame, column: Column) -> tuple[Allowed, ...]:
    """The best layers of a column beside the ceilings of their grids; empty where no ceiling is known.

    Args:
        records: Scores of one suite.
        column: Task, dataset, protocol and metric.
    """
    rows = at_best(records, column)
    values = {
        (str(one.backbone), str(one.metric)): float(one.value)  # type: ignore[arg-type]
        for one in rows.itertuples(index=False)
    }
    found = []
    for name, layer in dict(zip(rows["backbone"], rows["layer"], strict=True)).items():
        ceiling = values.get((name, ceiling_metric(column.metric)), 0.0)
        if ceiling > 0:
            by_area = values.get((name, area_ceiling_metric(column.metric)), math.nan)
            found.append(Allowed(name, int(layer), values[name, column.metric], ceiling, by_area))
    return tuple(found)
