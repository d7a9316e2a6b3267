"""The section on ceilings: what the grid of a backbone allows dense tasks to score."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said, section
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.tasks.framework.base import area_ceiling_metric, ceiling_metric

CEILING_NOTE = """\
The resolution of the feature grid limits the scores of dense tasks. The ceiling is the score of the
ground truth at the grid of the best layer: for `spair`, keypoints with a grid position within the
threshold; for `davis` and `segment`, the true masks, downsampled to the grid and upsampled like
predictions. A cell shows the score, the ceiling, and the score as a share of the ceiling. The ceiling of
`spair` is an upper bound; in rare cases soft predictions exceed that of masks. Larger inputs raise
ceilings."""

AREAS = """\
In brackets for `davis`: the ceiling with soft masks, in which a cell holds the share of it that the
object covers."""

REGIONS = """\
For `cluster-object` and `cluster-part` the ceiling is the purity of a classifier that sees only which
grid cells a region covers: regions with the same cells cannot be separated. `cluster-image` has no
ceiling."""

CLUSTERINGS = ("cluster-object", "cluster-part")


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best layer of a backbone in a column, and the ceiling of its grid, in percent."""

    score: float
    ceiling: float  # score of the ground truth on its grid
    by_area: float = math.nan  # the same for soft masks, whose cells hold area shares; NaN if unknown

    def __str__(self) -> str:
        return f"{self.ceiling:.1f}" + ("" if math.isnan(self.by_area) else f" ({self.by_area:.1f})")


def ceilings_of(column: Column) -> Mapping[str, Ceiling]:
    """Each backbone's best layer in a column with the ceiling of its grid; empty if none is known."""
    names = [column.metric, ceiling_metric(column.metric), area_ceiling_metric(column.metric)]
    wide = column.at_best.pivot_table("value", "backbone", "metric", "last", sort=False)
    numbers = wide.reindex(columns=names).itertuples(name=None)
    return {name: Ceiling(*map(float, values)) for name, *values in numbers if values[1] > 0}


def ceiling_blocks(board: Board) -> list[Block]:
    """The section on ceilings; empty if none is known."""
    ceilings = {column: by_name for column in board.columns if (by_name := ceilings_of(column))}
    cells = {
        (name, column.heading): f"{each.score:.1f} of {each}: {100 * each.score / each.ceiling:.0f} %"
        for column, by_name in ceilings.items()
        for name, each in by_name.items()
    }
    frame = cell_table(board.labels, [column.heading for column in ceilings], cells)
    areas = [ceiling.by_area for by_name in ceilings.values() for ceiling in by_name.values()]
    notes = [CEILING_NOTE] if all(map(math.isnan, areas)) else [CEILING_NOTE, AREAS]
    notes += [REGIONS] if any(column.task in CLUSTERINGS for column in ceilings) else []
    table = Table(frame, left=1, caption="Scores beside what the grids allow")
    return section(Heading(2, "What the grid allows"), *map(said, notes), table)
