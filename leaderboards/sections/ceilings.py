"""The section on ceilings: how much of what a layer's grid allows its score is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from leaderboards.board import Board
from leaderboards.scores.column import Column
from tasks.base import area_ceiling_metric, ceiling_metric
from tasks.blocks import Block, Heading, Table, said

NOTE = """\
A layer can say no more than its grid: a keypoint is a pixel or a token, a mask is made of cells. The ceiling
is what the ground truth itself gets on the best layer's grid: for `spair` the points that lie near enough to
a place that can be said at all, for `davis` and `segment` the true masks, put on the grid and read off again
as predicted ones are. A cell shows score, ceiling and how much of it the score is. That of `spair` is a
bound; true masks may be beaten by soft predictions in rare cases. Larger inputs raise ceilings."""

AREAS = """\
In brackets for `davis`: the ceiling of masks that tell each cell exactly how much of it each object covers.
Masks that are seeded on cells say less; soft predictions may come near it."""

REGIONS = """\
For `cluster-object` and `cluster-part` the ceiling is the purity where each region is put with the class that
its cells show most: regions of the same cells cannot be told apart by any feature. Of clusters of whole
images there is none: each has a vector of its own."""

CLUSTERINGS = ("cluster-object", "cluster-part")


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best layer of a backbone in a column, and the ceiling of its grid, in percent."""

    layer: int
    score: float
    ceiling: float  # what the ground truth gets on its grid
    by_area: float = math.nan  # the same where cells know how much of them is of what; NaN where unknown

    def __str__(self) -> str:
        by_area = "" if math.isnan(self.by_area) else f" ({self.by_area:.1f})"
        return f"{self.ceiling:.1f}{by_area}"


def ceilings_of(column: Column) -> Mapping[str, Ceiling]:
    """Each backbone's best layer in a column with the ceiling of its grid; empty where none is known."""
    values: dict[tuple[str, int], dict[str, float]] = {}
    fields = column.at_best[["backbone", "layer", "metric", "value"]]
    for name, layer, metric, value in fields.itertuples(index=False, name=None):
        values.setdefault((str(name), int(layer)), {})[str(metric)] = float(value)
    ceiling_name, area_name = ceiling_metric(column.metric), area_ceiling_metric(column.metric)
    return {
        name: Ceiling(layer, metrics[column.metric], ceiling, metrics.get(area_name, math.nan))
        for (name, layer), metrics in values.items()
        if (ceiling := metrics.get(ceiling_name, 0.0)) > 0
    }


def ceiling_blocks(board: Board) -> list[Block]:
    """The section on ceilings; nothing where none is known."""
    ceilings = {column: by_name for column in board.columns if (by_name := ceilings_of(column))}
    if not ceilings:
        return []
    body = [
        {"backbone": backbone.label}
        | {column.heading: _cell(by_name.get(backbone.name)) for column, by_name in ceilings.items()}
        for backbone in board.backbones
        if any(backbone.name in by_name for by_name in ceilings.values())
    ]
    every = [ceiling for by_name in ceilings.values() for ceiling in by_name.values()]
    notes = [NOTE, *([AREAS] if any(not math.isnan(ceiling.by_area) for ceiling in every) else [])]
    notes += [REGIONS] if any(column.task in CLUSTERINGS for column in ceilings) else []
    table = Table(pd.DataFrame(body), left=1, caption="Scores beside what the grids allow")
    return [Heading(2, "What the grid allows"), *map(said, notes), table]


def _cell(ceiling: Ceiling | None) -> str:
    """``61.9 of 70.3 (75.1): 88 %``: score, ceiling, that by area where there is one, and the share."""
    if ceiling is None:
        return ""
    return f"{ceiling.score:.1f} of {ceiling}: {100 * ceiling.score / ceiling.ceiling:.0f} %"
