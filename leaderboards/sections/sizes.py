"""The sections on ceilings of grids, and on scores against the input size, which makes grids finer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.blocks.display import score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.differences import MISSING, Estimate, best_side, differences_of
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.leaderboards.sections.transforms import difference_text
from layerboard.tasks.framework.base import area_ceiling_metric, ceiling_metric
from layerboard.zoo.spec import NameParts

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
    if not ceilings:
        return []
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
    return [Heading(2, "What the grid allows"), *map(said, notes), table]


# sizes within this factor share a column if no backbone was run at both: 768 px become 770 px for a network
# with patches of 14 px
ALIKE = 1.05

NOTE = """\
The same backbones at several input resolutions. In the other tables each resolution has a row of its own
(`@448px`; without a suffix it is the backbone's own). A cell is the score of the best layer at that
resolution, `of` the ceiling of its grid. `largest less smallest` is the difference in points with a paired
95 % interval, not corrected for multiple comparisons; both layers were chosen on the test data. `alike`: all
layers score the same, as where the protocol fixes the resolution. Tokens, and so costs, grow with the square
of the side."""


@dataclass(frozen=True, slots=True)
class AtSize:
    """A backbone at one input size in a column."""

    name: str  # at that size
    input_size: int  # side in pixels
    score: float  # of its best block, in percent; for the random floor the mean of its draws
    best: Side | None = None  # None for the random floor
    ceiling: Ceiling | None = None  # of the grid of that block; None if unknown


@dataclass(frozen=True, slots=True)
class BySize:
    """A backbone at several input sizes in a column."""

    column: Column
    backbone: str  # without a size
    sizes: tuple[AtSize, ...]  # the smallest first
    gain: Estimate  # largest minus smallest, layers chosen on the test data; NaN for the floor
    same: bool  # whether all of its layers score the same at every size


def by_size(board: Board) -> tuple[BySize, ...]:
    """Every backbone with several input sizes, by column and backbone in table order."""
    names: dict[str, list[str]] = {}
    for backbone in board.scored_backbones:
        names.setdefault(_unsized(backbone.name), []).append(backbone.name)
    several = {entry: sized for entry, sized in names.items() if len(sized) > 1}
    rows = []
    for column in board.columns if several else ():
        ceilings = ceilings_of(column)
        for entry, sized in several.items():
            scored = [at for name in sized if (at := _at_size(column, name, ceilings))]
            sizes = sorted(scored, key=lambda at: at.input_size)
            if len({at.input_size for at in sizes}) > 1:
                first, last = sizes[0].best, sizes[-1].best
                gain = differences_of(column, [last], first, board.items)[0] if first and last else MISSING
                same = _same(column, [at.name for at in sizes])
                rows.append(BySize(column, entry, tuple(sizes), gain, same))
    return tuple(rows)


def _unsized(name: str) -> str:
    return str(NameParts.of(name)._replace(input_size=None))


def size_columns(rows: Sequence[BySize]) -> tuple[tuple[int, ...], ...]:
    """Input sizes as columns of a table, ascending; one column may combine sizes that nearly agree."""
    every = [{at.input_size for at in row.sizes} for row in rows]
    columns: list[tuple[int, ...]] = []
    for size in sorted(set().union(*every)):
        near = columns[-1] if columns and size <= ALIKE * columns[-1][0] else ()
        if near and not any(size in sizes and sizes & {*near} for sizes in every):
            columns[-1] = (*near, size)
        else:
            columns.append((size,))
    return tuple(columns)


def _at_size(column: Column, name: str, ceilings: Mapping[str, Ceiling]) -> AtSize | None:
    """A backbone of that name in a column; None if it has no score there."""
    rows = column.candidates[column.candidates["backbone"] == name]
    if len(rows):
        best = best_side(rows, name)
        return AtSize(name, int(rows["input_size"].iloc[0]), best.score, best, ceilings.get(name))
    draws = column.floors[column.floors["backbone"] == name]
    if draws.empty:
        return None
    size = column.rows.loc[column.rows["backbone"] == name, "input_size"].iloc[0]
    return AtSize(name, int(size), float(draws["mean"].iloc[0]))


def _same(column: Column, names: Sequence[str]) -> bool:
    """Whether some backbones have the same layers with the same values of the column's metric."""
    rows = column.scored[column.scored["value"].notna()]
    frames = (rows.loc[rows["backbone"] == name, ["layer", "tap", "pooling", "value"]] for name in names)
    return len({tuple(sorted(frame.itertuples(index=False, name=None))) for frame in frames}) == 1


def size_blocks(board: Board) -> list[Block]:
    """The section on scores against input sizes; empty if each backbone was run at one."""
    rows = by_size(board)
    if not rows:
        return []
    columns = size_columns(rows)
    names = {backbone: _unsized(backbone.name) for backbone in board.backbones}
    labels = {name: replace(backbone, name=name).label for backbone, name in names.items()}
    body = []
    for row in rows:
        cells = {"column": row.column.heading, "backbone": labels[row.backbone]}
        for sizes in columns:
            heading = f"{sizes[0]} px" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} px"
            at = next((at for at in row.sizes if at.input_size in sizes), None)
            cells[heading] = _cell(at, exact=len(sizes) > 1) if at else ""
        body.append(cells | {"largest less smallest": "alike" if row.same else difference_text(row.gain)})
    table = Table(pd.DataFrame(body), left=2, caption="Scores against the input size", head=1)
    return [Heading(2, "Score against input size"), said(NOTE), table]


def _cell(at: AtSize, *, exact: bool) -> str:
    """``71.2 (9/12) of 89.3``: score, best layer, depth and ceiling; the size if columns combine several."""
    layer = "" if at.best is None else f" ({at.best.layer}/{at.best.depth})"
    ceiling = "" if at.ceiling is None else f" of {at.ceiling}"
    return f"{score_text(at.score)}{layer}{ceiling}{f', {at.input_size} px' if exact else ''}"
